import Foundation
import TestSupport
import Testing

/// Apps with change streams and large answers, at the real programs.
@Suite(.needs(.python), .scratchFolder) struct StreamingAppTests {
    private let scratch = ScratchFolder.current

    @Test func `a subscription survives an app that is killed and is back on its port at once`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let first = try await StreamingApp(in: scratch)
        let id = try await broker.add(first)
        let client = try await broker.start("mcp", "--endpoint", id, input: .pipe)
        func updates() -> Int { client.output.count { $0.contains("resources/updated") && $0.contains("a:1") } }
        try client.write(
            #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#
                + #""clientInfo":{"name":"c","version":"1"}}}"# + "\n"
                + #"{"jsonrpc":"2.0","method":"notifications/initialized"}"# + "\n"
                + #"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:1"}}"# + "\n"
        )
        try await client.waitForLine(#""id":2"#, within: .seconds(60))
        try await first.program.waitForLine("stream", within: .seconds(60))
        try first.program.write("change\n")
        try await eventually("the first change arrives") { updates() == 1 }

        first.program.kill()
        _ = try await first.program.exitStatus()
        let second = try await StreamingApp(port: first.port, in: scratch)

        try await second.program.waitForLine("subscribed a:1", within: .seconds(60))
        try await second.program.waitForLine("stream", within: .seconds(60))
        // The client is told of what may have changed while the app was away.
        try await eventually("the client is told to read again") { updates() == 2 }
        try second.program.write("change\n")
        try await eventually("the next change arrives") { updates() == 3 }
    }

    @Test func `apps that stall in the middle of a large answer delay no other app, and a time limit holds`()
        async throws
    {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        var stalled: [(app: StreamingApp, id: String, call: Program)] = []
        for number in 1...4 {
            let app = try await StreamingApp(in: scratch)
            let id = try await broker.add(app, named: "stalled\(number)")
            let call = try await broker.start("call", id, "stall", "--timeout", "60s")
            try await app.program.waitForLine("stalled", within: .seconds(60))
            stalled.append((app, id, call))
        }
        let other = try await StreamingApp(in: scratch)
        let id = try await broker.add(other, named: "other")

        let answer = try await broker.start("call", id, "large", "--timeout", "60s")
        #expect(try await answer.exitStatus(within: .seconds(60)) == .exited(0), "\(answer.log)")
        let limited = try await broker.start("call", stalled[0].id, "stall", "--timeout", "1s")
        #expect(try await limited.exitStatus(within: .seconds(60)) != .exited(0))
        #expect(limited.log.contains("within 1 s"), "\(limited.log)")

        let areRunning = stalled.allSatisfy { $0.call.isRunning }
        #expect(areRunning, "a stalled call ended first")
    }
}

extension RunningBroker {
    fileprivate func add(_ app: StreamingApp, named name: String = "shop") async throws -> String {
        let added = try await ask("add", name, "127.0.0.1:\(app.port)", "--kind", "mcp")
        return try #require(added.first?.split(separator: " ").last?.dropLast()).description
    }
}

/// An MCP server with sessions and a change stream, of which each launch has sessions of its own.
///
/// Prints "stream" for each opened stream, "subscribed URI" for each subscription, and "stalled" in the middle of an
/// answer. The line "change" on its standard input announces a change of the resource `a:1`.
private struct StreamingApp {
    let port: UInt16
    let program: Program

    init(port: UInt16 = 0, in scratch: ScratchFolder) async throws {
        program = try await Program("python3", ["-u", "-c", Self.script, "\(port)"], in: scratch, input: .pipe)
        let line = try await program.waitForLine("listening on ", within: .seconds(60))
        self.port = try #require(UInt16(line.dropFirst("listening on ".count)))
    }

    private static let script = """
        import http.server, json, os, sys, threading, time
        session, streams = os.urandom(8).hex(), []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def begin(self, status, kind="application/json", length=0, headers={}):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                for name, value in headers.items():
                    self.send_header(name, value)
                if length is None:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                else:
                    self.send_header("Content-Length", str(length))
                self.end_headers()

            def is_known(self):
                return self.headers.get("Mcp-Session-Id") == session

            def do_GET(self):
                if not self.is_known():
                    return self.begin(404)
                self.begin(200, "text/event-stream", None)
                self.wfile.flush()
                streams.append(self.wfile)
                print("stream")
                threading.Event().wait()

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                method, params = request.get("method"), request.get("params", {})
                if method == "server/discover":
                    return self.begin(404)
                if method != "initialize" and not self.is_known():
                    return self.begin(404)
                if "id" not in request:
                    return self.begin(202)
                result, headers = {}, {}
                if method == "initialize":
                    headers["Mcp-Session-Id"] = session
                    result = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "streaming", "version": "1"},
                              "capabilities": {"tools": {}, "resources": {"subscribe": True}}}
                elif method == "resources/subscribe":
                    print("subscribed", params["uri"])
                elif method == "tools/list":
                    result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("large", "stall")]}
                elif method == "tools/call":
                    result = {"content": [{"type": "text", "text": "x" * 4000000}]}
                body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
                self.begin(200, length=len(body), headers=headers)
                if method == "tools/call" and params["name"] == "stall":
                    self.wfile.write(body[:3000000])
                    self.wfile.flush()
                    print("stalled")
                    threading.Event().wait()
                self.wfile.write(body)

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print("listening on", server.server_port)
        for line in sys.stdin:
            message = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:1"}}
            for stream in list(streams):
                try:
                    stream.write(b"data: " + json.dumps(message).encode() + b"\\n\\n")
                    stream.flush()
                except OSError:
                    streams.remove(stream)
        """
}
