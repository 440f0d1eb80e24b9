import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.scratchFolder) struct ServerTests {
    private let scratch = ScratchFolder.current

    @Test func `the sample app answers as AppReveal 0.9 does`() async throws {
        let app = try await SampleApp(in: scratch)
        let initialize = #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#
        let notification = #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#

        let answer = try await post(initialize, to: app, scratch)
        #expect(answer.contains(#""protocolVersion": "2025-06-18""#))
        let tools = try await post(#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, to: app, scratch)
        #expect(tools.contains(#""launch_context""#))
        let ping = try await post(#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#, to: app, scratch)
        #expect(ping.contains("-32601"))
        #expect(try await post(notification, to: app, scratch, ["-o", "/dev/null", "-w", "%{http_code}"]) == "204")
    }

    @Test(arguments: SampleMode.allCases) func `the sample app behaves like each AppReveal platform`(
        mode: SampleMode
    ) async throws {
        let app = try await SampleApp(mode: mode, in: scratch)
        let ping = #"{"jsonrpc":"2.0","id":3,"method":"ping"}"#
        let status = ["-o", "/dev/null", "-w", "%{http_code}"]
        let proof = app.token.map { ["-H", "Authorization: Bearer \($0)"] } ?? []

        #expect((app.token == nil) == (mode == .ios09))
        #expect(try await post(ping, to: app, scratch, status) == (mode == .ios09 ? "200" : "401"))
        let answer = try await post(ping, to: app, scratch, proof)
        #expect(answer.contains("-32601") == (mode != .windows))
        let isStrict = [.ios, .windows, .tauri].contains(mode)
        let origin = ["-H", "Origin: http://evil.example"]
        #expect(try await post(ping, to: app, scratch, proof + status + origin) == (isStrict ? "403" : "200"))
        let head = try await post(ping, to: app, scratch, proof + ["-i", "-H", "Accept-Encoding: identity"])
        #expect(head.contains("Connection: close") == (mode == .ios09 || mode == .ios))
        #expect(head.contains("Transfer-Encoding: chunked") == (mode == .flutter))
    }

    @Test func `an app relaunched at its old port listens on that port`() async throws {
        let first = try await SampleApp(in: scratch)
        try await first.quit()

        let second = try await SampleApp(port: first.port, in: scratch)

        #expect(second.port == first.port)
    }

    @Test func `the pattern server sends the pattern and checks received bytes`() async throws {
        let server = try PatternServer(sending: 1_000_000, in: scratch)
        let upload = scratch.file("upload")
        try Data(Pattern.bytes(0..<300_000)).write(to: URL(filePath: upload))

        let address = "TCP:127.0.0.1:\(server.port)"
        try await Program.run(
            "sh",
            ["-c", "socat -t 5 - \(address) <\(upload) >\(scratch.file("download"))"],
            in: scratch
        )

        let download = try Data(contentsOf: URL(filePath: scratch.file("download")))
        #expect(download.count == 1_000_000)
        #expect(Pattern.matches(download, from: 0))
        var uploads = server.uploads.elements().makeAsyncIterator()
        #expect(await uploads.next() == PatternServer.Upload(count: 300_000))
    }

    @Test func `the pattern reveals a lost, a repeated and a swapped byte`() {
        let bytes = Pattern.bytes(1000..<2000)

        #expect(Pattern.matches(bytes, from: 1000))
        #expect(!Pattern.matches(bytes.dropFirst(), from: 1000))
        #expect(!Pattern.matches(bytes.prefix(1) + bytes, from: 1000))
        #expect(!Pattern.matches(bytes.reversed(), from: 1000))
    }

    @Test func `the Python peer can be imported`() async throws {
        let python = try await PythonPeers.interpreter(in: scratch)

        try await Program.run(python, ["-c", "import zeroconf"], in: scratch)
    }

    private func post(
        _ body: String,
        to app: SampleApp,
        _ scratch: ScratchFolder,
        _ options: [String] = []
    ) async throws -> String {
        let address = "http://127.0.0.1:\(app.port)/any/path"
        return try await Program.run("curl", ["-s", "-d", body] + options + [address], in: scratch)
            .joined(separator: "\n")
    }
}
