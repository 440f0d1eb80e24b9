import FoundationEssentials
import TestSupport
import Testing

/// `GET /v1/streams` with requests that are written as bytes.
@Suite(.needs(.python), .scratchFolder) struct StreamUpgradeTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("StreamUpgradeTests.swift".count)) + "stream_upgrade.py"

    /// Runs the script with a broker that has the endpoint `app`, which echoes.
    private func run(_ scenario: String) async throws -> (RunningBroker, lines: [String]) {
        let app = try EchoServer(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "App", "127.0.0.1:\(app.port)", "--kind", "mcp")
        let arguments = [Self.script, scenario, broker.socket, "app"]
        return (broker, try await Program.run("python3", arguments, in: scratch))
    }

    @Test func `no malformed upgrade is answered with 101, and no request behind a body is carried out`() async throws {
        let (broker, lines) = try await run("malformed")
        #expect(lines.count == 1 && lines.last?.hasSuffix(" cases, 0 wrong") == true, "\(lines)")
        let status = try await broker.ask("status", "--json").joined()
        #expect(!status.contains(#""streams""#))
    }

    @Test func `every form of a valid upgrade opens a stream`() async throws {
        let (_, lines) = try await run("valid")
        #expect(lines.count == 7 && lines.allSatisfy { $0 == "101 x" }, "\(lines)")
    }

    @Test func `bytes that a client sends before the answer reach the target in order`() async throws {
        let (_, lines) = try await run("early")
        let sizes = [1, 40_000, 400_000]
        let expected = (0..<7).flatMap { _ in sizes.map { "101 \($0) bytes complete" } }
        #expect(lines == expected, "\(lines)")
    }

    @Test func `a refused request with Upgrade says that its connection ends, and ends it`() async throws {
        let (_, lines) = try await run("refused")
        #expect(lines == ["503 close", "400 close", "404 close", "200 close", "200 close", "426 200"], "\(lines)")
    }

    @Test func `clients that leave at any moment leave no socket behind`() async throws {
        let app = try EchoServer(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "App", "127.0.0.1:\(app.port)", "--kind", "mcp")
        func sockets() throws -> Int {
            let folder = "/proc/\(broker.daemon.processID)/fd"
            return try FileManager.default.contentsOfDirectory(atPath: folder).count { name in
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)"))?
                    .hasPrefix("socket:") == true
            }
        }
        let before = try sockets()

        try await Program.run("python3", [Self.script, "hasty", broker.socket, "app"], in: scratch)

        // A probe of the app may be open at the start or at the end.
        try await eventually("the sockets are closed") { try sockets() <= before + 1 }
        let status = try await broker.ask("status", "--json").joined()
        #expect(!status.contains(#""streams""#))
    }

    @Test func `a client that leaves during the dial ends the dial`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let client = try await Program("python3", [Self.script, "leave", broker.socket], in: scratch, input: .pipe)
        let port = try await client.waitForLine("port ").dropFirst("port ".count)
        _ = try await broker.ask("add", "Silent", "127.0.0.1:\(port)", "--kind", "mcp")
        func isOpen() async throws -> Bool {
            try await broker.ask("status", "--json").joined().contains(#""streams":1"#)
        }

        try client.write("wait\n")
        try await eventually("the broker dials") { try await isOpen() }
        try client.write("leave\n")
        try await client.waitForLine("left")
        try await eventually("the dial has ended") { try await !isOpen() }

        // A dial that goes on ends at its time limit, which is counted and logged.
        #expect(!broker.daemon.log.contains("reason=timedOut"), "\(broker.daemon.log)")
        client.closeInput()
        #expect(try await client.exitStatus() == .exited(0), "\(client.log)")
    }
}
