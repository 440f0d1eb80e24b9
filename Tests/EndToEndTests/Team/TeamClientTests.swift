import Model
import TestSupport
import Testing

/// Clients of one host: what they see of the endpoints of another host, and what their grants allow there.
@Suite(.needs(.etcd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamClientTests {
    private let scratch = ScratchFolder.current

    /// Creates a socket of `lab1` for one grant. Returns a function that runs `patchbay` with it.
    private func grant(
        _ options: [String],
        in team: RunningTeam
    ) async throws -> (_ words: [String]) async throws -> Program {
        let socket = team.scratch.file("grant-\(UInt32.random(in: 0 ... .max)).sock")
        let pair = try await team.lab1.start(["pair", "--socket", socket] + options)
        #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
        return { words in
            let program = try await Program(
                Executable.built("patchbay"),
                words,
                in: team.scratch,
                environment: ["PATCHBAY_SOCKET": socket, "HOME": team.scratch.path]
            )
            _ = try await program.exitStatus()
            return program
        }
    }

    @Test func `watch and an agent at one host see an endpoint of the other host, its changes and its end`()
        async throws
    {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        let broker = try await AgentBroker(socket: team.lab1.socket, port: team.apiPorts[0], in: team.scratch)
        let url = "http://127.0.0.1:\(broker.port)/mcp"
        let agent = try await AgentClient(.mcp1, to: url, grant: broker.grant, in: team.scratch)
        let watch = try await team.lab1.start("watch")
        try await watch.waitForLine("shop.lab2")
        let list = try await agent.call("endpoint_list")
        #expect(list.text?.contains("shop.lab2") == true, "\(list.log)")
        #expect(try await agent.call("endpoint_wait", #"{"endpoint": "shop.lab2"}"#).text != nil)

        _ = try await team.lab2.ask("add", "late", "127.0.0.1:9", "--kind", "mcp")
        try await watch.waitForLine("late.lab2")
        let changed = try await agent.call("endpoint_list")
        #expect(changed.text?.contains("late.lab2") == true, "\(changed.log)")

        _ = try await team.lab2.ask("rm", "late")
        try await watch.waitForLine("removed")
        let last = try await agent.call("endpoint_list")
        #expect(last.text?.contains("late.lab2") == false, "\(last.log)")
    }

    @Test func `a call to a broker that hangs ends soon after its timeout, with an unknown result`() async throws {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        // The connection between the brokers stays open for the next call.
        _ = try await team.lab1.ask("call", "shop.lab2", "get_screen")
        team.lab2.daemon.freeze()
        let answer = try await Program.run(
            "curl",
            [
                "-sS", "--unix-socket", team.lab1.socket, "-H", "Content-Type: application/json",
                "-d", #"{"tool":"get_screen","timeoutSeconds":1}"#, "http://localhost/v1/endpoints/shop.lab2/call",
            ],
            in: team.scratch,
            within: .seconds(20)
        ).joined()
        #expect(answer.contains(#""isError":true"#), "\(answer)")
        #expect(answer.contains("shop.lab2 has not answered within 6 s"), "\(answer)")
        #expect(answer.contains("on lab2, and check the result before you try again"), "\(answer)")
        team.lab2.daemon.thaw()
    }

    @Test func `a call that waits for a broker that hangs ends with the entries of its host`() async throws {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        _ = try await team.lab1.ask("call", "shop.lab2", "get_screen")
        team.lab2.daemon.freeze()

        let call = try await team.lab1.start("call", "shop.lab2", "get_screen", "--timeout", "2m")

        #expect(try await call.exitStatus() != .exited(0))
        #expect(call.log.contains("the host lab2 went offline before its response"), "\(call.log)")
        team.lab2.daemon.thaw()
    }

    @Test func `a new stream to a broker that hangs is refused when the entries of its host end`() async throws {
        let (team, _) = try await RunningTeam.startWithApp(in: scratch)
        team.lab2.daemon.freeze()
        let start = ContinuousClock.now

        let answer = try await Program.run(
            "curl",
            [
                "-sS", "--unix-socket", team.lab1.socket, "-H", "Connection: Upgrade", "-H",
                "Upgrade: patchbay-stream/1", "http://localhost/v1/streams?endpoint=shop.lab2",
            ],
            in: team.scratch,
            within: .seconds(60)
        ).joined()

        #expect(answer.contains("the broker of the host lab2 is unreachable"), "\(answer)")
        // The entries end 10 s after the last sign of life.
        #expect(ContinuousClock.now - start < .seconds(14), "\(ContinuousClock.now - start)")
        print("frozen host: a new stream was refused after \(ContinuousClock.now - start): \(answer)")
        team.lab2.daemon.thaw()
    }

    @Test(.needs(.root)) func `a grant for one host reaches the endpoints of that host alone`() async throws {
        let (team, app) = try await RunningTeam.startWithApp(in: scratch)
        _ = try await team.lab1.ask("add", "own", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        try await team.waitForEndpoint("own", at: team.lab1)
        let patchbay = try await grant(["--team-host", "lab2"], in: team)

        let list = try await patchbay(["list"]).output.joined(separator: "\n")
        #expect(list.contains("shop.lab2") && !list.contains("own"), "\(list)")
        let call = try await patchbay(["call", "shop.lab2", "get_screen"])
        #expect(try await call.exitStatus() == .exited(0), "\(call.log)")
        let refused = try await patchbay(["call", "own", "get_screen"])
        #expect(try await refused.exitStatus() != .exited(0), "\(refused.log)")
        #expect(app.program.output.filter { $0.contains("call: get_screen") }.count == 1)
    }

    @Test(.needs(.root)) func `the broker of the app refuses what the grant at the other host does not allow`()
        async throws
    {
        let (team, app) = try await RunningTeam.startWithApp(in: scratch)
        let reader = try await grant(["--scope", "registry.read"], in: team)
        let limited = try await grant(["--read-only"], in: team)

        let list = try await reader(["list"])
        #expect(list.output.contains { $0.contains("shop.lab2") }, "\(list.log)")
        for (patchbay, words) in [
            (reader, ["call", "shop.lab2", "get_screen"]),
            (reader, ["forward", "--detach", "tcp:0", "-e", "shop.lab2"]),
            (limited, ["call", "shop.lab2", "tap_element", "element_id=buy"]),
        ] {
            let refused = try await patchbay(words)
            #expect(try await refused.exitStatus() == .exited(77), "\(words): \(refused.log)")
        }
        for tool in ["get_screen", "tap_element"] {
            #expect(!app.program.output.contains { $0.contains("call: \(tool)") })
        }
        let allowed = try await limited(["call", "shop.lab2", "get_screen"])
        #expect(try await allowed.exitStatus() == .exited(0), "\(allowed.log)")
    }
}
