import FoundationEssentials
import TestSupport
import Testing

/// Access to the MCP endpoints: scopes, limits and the end of grants.
@Suite(.needs(.python), .scratchFolder) struct AgentGrantTests {
    private let scratch = ScratchFolder.current
    private static let script = "\(AgentPeer.folder)/grants.py"

    /// A configuration with the app as the endpoint `shop`.
    private static func configuration(port: UInt16, _ app: SampleApp) -> String {
        """
        \(AgentBroker.configuration(port: port))
        [[endpoint]]
        name = "shop"
        kind = "appreveal"
        address = "127.0.0.1"
        port = \(app.port)
        app = "\(app.bundle)"
        """
    }

    @Test(.timeLimit(.minutes(2)))
    func `a grant allows only its scopes at the MCP endpoints, and its end closes its sessions`() async throws {
        let port = try FreePorts.take()[0]
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: Self.configuration(port: port, app))

        let lines = try await Program.run(
            "python3",
            [Self.script, broker.socket, "\(port)", "shop"],
            in: scratch,
            within: .seconds(60)
        )

        let denied = "error: your grant does not allow"
        let next = "; ask the person who invited you for a grant that does"
        #expect(
            lines == [
                "anonymous 401 Bearer", "host 421", "origin 403", "reader lists 6", "reader sees ok: online: shop",
                "reader calls \(denied) endpoint.call\(next)", "reader forwards \(denied) tunnel.open\(next)",
                "reader at the app error: your grant does not include shop: ask an owner for the scope endpoint.call "
                    + "on it",
                "caller calls ok:", "caller at the app ok:", "other sees ok: none", "other at the app 404",
                "opener opens ok: active", "opener has 1", "tunnels then ok: none", "stream cut", "afterwards 401",
                "meanwhile ok", "at once True",
            ]
        )
    }

    @Test(.timeLimit(.minutes(2)))
    func `a grant has its share of tunnels, sees only its own, and gets an early 413 for a large body`()
        async throws
    {
        let port = try FreePorts.take()[0]
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: Self.configuration(port: port, app))

        let lines = try await Program.run(
            "python3",
            [Self.script, "limits", broker.socket, "\(port)", "shop"],
            in: scratch,
            within: .seconds(60)
        )

        let beyond = "a grant may have 64 tunnels at once, and ID would have more"
        let states = lines.first { $0.hasPrefix("owner is told") }?.dropFirst("owner is told ".count)
            .prefix { $0 != "}" }
        #expect(
            lines == [
                "opened 63 {201}", "held beyond \(beyond)", "agent opens ok:", "beyond 429 limit",
                "agent beyond error: \(beyond); next: remove a tunnel that is no longer needed", "owner opens 201",
                "closes one ok: closed", "and opens 201", "one is told \(states ?? "")} 64 False False",
                "other is told {} 0 False False", "owner is told \(states ?? "")} 65 True True",
                "large HTTP/1.1 413 Payload Too Large",
            ]
        )
    }

    @Test(.timeLimit(.minutes(2)))
    func `the end of a grant after its response closes no other client's connection`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: AgentBroker.configuration(port: port))

        let lines = try await Program.run(
            "python3",
            [Self.script, "ends", broker.socket, "\(port)"],
            in: scratch,
            within: .seconds(60)
        )

        #expect(lines == ["broken 0"])
    }

    @Test(.timeLimit(.minutes(2)), arguments: ["revoked", "gone"])
    func `queued calls do not reach the app after the end of their grant or client`(end: String) async throws {
        let port = try FreePorts.take()[0]
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: Self.configuration(port: port, app))
        let client = try await Program(
            "python3",
            [Self.script, "queue", broker.socket, "\(port)", "shop", end],
            in: scratch,
            input: .pipe
        )
        try await eventually("the app has as many as it takes") { app.program.output.count { $0 == "call: wait" } == 4 }

        try client.write("end\n")
        try await client.waitForLine("over")

        // A late call would arrive once the four running ones are finished.
        try await eventually("they are over") {
            app.program.output.count { $0.contains("POST") && $0.contains(" 200 ") } >= 6
        }
        #expect(try await broker.ask("call", "shop", "get_screen").joined().contains("get_screen"))
        #expect(app.program.output.count { $0 == "call: wait" } == 4)
    }

    @Test(.timeLimit(.minutes(10)))
    func `a tunnel that is being opened when its grant ends is removed`() async throws {
        let port = try FreePorts.take()[0]
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: Self.configuration(port: port, app))
        let isSoak = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1"

        let lines = try await Program.run(
            "python3",
            [Self.script, "opening", broker.socket, "\(port)", "shop", isSoak ? "1000" : "40"],
            in: scratch,
            within: .seconds(500)
        )

        #expect(lines == ["left 0 some opened True"])
    }

    @Test(.timeLimit(.minutes(2)))
    func `an MCP session continues after a restart of the broker`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let client = try await Program("python3", [Self.script, "session", broker.socket], in: scratch, input: .pipe)
        try await client.waitForLine(".2025-06-18.")

        try await broker.restart()
        try client.write("go on\n")

        try await client.waitForLine("200 6")
    }
}
