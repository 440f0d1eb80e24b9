import TestSupport
import Testing

/// A host of a team that somebody has taken over: what its answers can do to the clients of another host.
@Suite(.needs(.etcd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct HostileHostTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("HostileHostTests.swift".count)) + "hostile_host.py"
    /// The number of different answers of the script.
    private static let answers = 11

    /// The names of all headers that a client may get: those of a broker itself, and those that it passes on.
    private static let names: Set = [
        "cache-control", "connection", "content-length", "content-type", "date", "keep-alive", "mcp-protocol-version",
        "mcp-session-id", "referrer-policy", "retry-after", "server", "transfer-encoding", "x-content-type-options",
    ]
    private static let mediaTypes: Set = [
        "application/json", "application/problem+json", "text/event-stream", "application/octet-stream",
    ]

    /// The arguments of curl for the requests of local clients that the broker of the other host answers.
    private static let requests: [[String]] = [
        ["/v1/endpoints/shop.lab2/tools"],
        post("/v1/endpoints/shop.lab2/call", #"{"tool":"tap"}"#),
        ["/v1/endpoints/shop.lab2/probe", "-X", "POST"],
        ["/v1/leases?endpoint=shop.lab2"],
        post("/v1/leases", #"{"endpoint":"shop.lab2"}"#),
        post("/e/shop.lab2/mcp", #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        ["/e/shop.lab2/mcp", "-H", "Accept: text/event-stream"],
        ["/e/shop.lab2/mcp", "-X", "DELETE"],
        ["/v1/streams?endpoint=shop.lab2", "-H", "Connection: Upgrade", "-H", "Upgrade: patchbay-stream/1"],
    ]

    private static func post(_ path: String, _ body: String) -> [String] {
        let accept = "Accept: application/json, text/event-stream"
        return [path, "-d", body, "-H", "Content-Type: application/json", "-H", accept]
    }

    @Test func `no header and no page of a hostile host reaches a local client`() async throws {
        let app = try await SampleApp(in: scratch)
        let port = try FreePorts.take()[0]
        let team = try await RunningTeam(in: scratch, publishing: port)
        let host = try await Program(
            "python3",
            [Self.script, "127.0.0.1", "\(port)", "\(team.lab2.state)/team/host.pem"],
            in: scratch
        )
        try await host.waitForLine("listening")
        _ = try await team.lab2.ask("add", "shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        try await team.waitForEndpoint("shop.lab2", at: team.lab1)

        for request in Self.requests {
            for _ in 0..<Self.answers {
                let lines = try await Self.send(request, to: team.lab1, in: scratch)
                Self.check(lines, request)
            }
        }

        // Every request reached the hostile host.
        let answered = host.output.count { $0.hasPrefix("answered") }
        #expect(answered >= Self.answers * Self.requests.count, "\(host.output)")
        let metrics = try await Self.send(["/metrics"], to: team.lab1, in: scratch)
        let counted = metrics.first { $0.hasPrefix("patchbay_dropped_host_headers_total{") }
        #expect(counted.flatMap { $0.split(separator: " ").last }.flatMap { Double($0) } ?? 0 > 100, "\(metrics)")
        #expect(try await team.lab1.ask("list").contains { $0.contains("shop.lab2") })
    }

    /// Sends a request to a broker, and returns the lines of the whole answer.
    private static func send(
        _ request: [String],
        to broker: RunningBroker,
        in scratch: ScratchFolder
    ) async throws -> [String] {
        let curl = try await Program(
            "curl",
            ["-sS", "-i", "--max-time", "20", "--unix-socket", broker.socket] + request.dropFirst()
                + ["http://localhost\(request[0])"],
            in: scratch
        )
        _ = try await curl.exitStatus(within: .seconds(30))
        return curl.output
    }

    private static func check(_ lines: [String], _ request: [String]) {
        #expect(lines.first?.hasPrefix("HTTP/1.1 ") == true, "\(request): \(lines)")
        var types: [String] = []
        for line in lines.dropFirst().prefix(while: { !$0.allSatisfy(\.isWhitespace) }) {
            let parts = line.split(separator: ":", maxSplits: 1).map {
                $0.lowercased().filter { $0 != " " && $0 != "\r" }
            }
            #expect(names.contains(parts.first ?? ""), "\(request): \(line)")
            #expect(!line.lowercased().contains("hostile"), "\(request): \(line)")
            if parts.first == "content-type" { types.append(parts.last ?? "") }
        }
        #expect(types.allSatisfy(mediaTypes.contains) && types.count <= 1, "\(request): \(types)")
    }
}
