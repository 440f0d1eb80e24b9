import FoundationEssentials
import Model
import TestSupport
import Testing

/// Agents that share one phone with leases.
///
/// Each of 20 agents takes two turns; with `PATCHBAY_SOAK=1` (`make soak`) the agents take turns for a minute.
@Suite(.serialized, .needs(.usbmuxd, .python), .timeLimit(.minutes(5))) struct LeaseSoakTests {
    private static let isLong = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1"
    private static let agents = 20

    private struct Outcome: Decodable {
        let turns: [Int]
        let reads: Int
        let refused: Int
        let longestWait: Double
        let errors: [String]
    }

    @Test func `no two changing calls of 20 agents overlap, and each agent gets its turns`() async throws {
        try await Self.withPhone { broker, id, app, run in
            let text = try await run(["2", Self.isLong ? "60" : "0"])

            let outcome = try JSONDecoder().decode(Outcome.self, from: Data(text.utf8))
            let calls = app.program.output.filter { $0.hasPrefix("begin: ") || $0.hasPrefix("end: ") }
            print(
                "leases: \(calls.count / 2) changing calls, \(Self.overlaps(in: calls)) overlap; turns \(outcome.turns); "
                    + "longest wait \(outcome.longestWait) s; \(outcome.reads) reads, \(outcome.refused) refused calls"
            )
            #expect(outcome.errors.isEmpty, "\(outcome.errors)")
            #expect(Self.overlaps(in: calls) == 0)
            // Each agent has the same number of turns, apart from the last round.
            let turns = outcome.turns.dropFirst()
            #expect(outcome.turns.count == Self.agents && outcome.turns.allSatisfy { $0 >= 1 })
            #expect((turns.max() ?? 0) - (turns.min() ?? 0) <= 1)
            #expect(outcome.reads > 0 && outcome.refused > 0)
            // Nothing is left but the last lease of the agent that ends none.
            #expect(try await broker.ask("leases", "--quiet").count <= 1)
        }
    }

    @Test func `without leases, the calls of the agents overlap`() async throws {
        try await Self.withPhone { _, _, app, run in
            let said = try await run(["free", "0"])
            #expect(said == #"{"errors": []}"#)

            let calls = app.program.output.filter { $0.hasPrefix("begin: ") || $0.hasPrefix("end: ") }
            #expect(calls.count == 2 * Self.agents)
            #expect(Self.overlaps(in: calls) > 0)
        }
    }

    /// The number of calls that begin during another call. Each call has a line at its begin and at its end.
    private static func overlaps(in lines: [String]) -> Int {
        var (running, overlaps) = (0, 0)
        for line in lines {
            if line.hasPrefix("begin") {
                if running > 0 { overlaps += 1 }
                running += 1
            } else {
                running -= 1
            }
        }
        return overlaps
    }

    /// Runs the body with an app on a phone, and a closure that runs the agents with arguments and returns their result.
    private static func withPhone(
        _ body: (RunningBroker, String, SampleApp, @Sendable ([String]) async throws -> String) async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            var options = PhoneOptions.usual
            options.address = "127.44.\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
            let app = try await SampleApp(mode: .ios09, address: options.address, port: 9_876, in: scratch)
            let phones = try await UsbmuxdFixture(in: scratch)
            try await phones.attach(Phones.one, options)
            let port = try FreePorts.take()[0]
            let broker = try await RunningBroker(
                in: scratch,
                phones: phones,
                configuration: AgentBroker.configuration(port: port)
            )
            let id = try await eventually("the app is listed") {
                try await broker.endpoints().first { $0.kind == .appreveal && $0.state == .online }?.id.text
            }
            var grants: [String] = []
            for _ in 0...agents {
                grants.append(try await AgentBroker(socket: broker.socket, port: port, in: scratch).grant)
            }
            try await body(broker, id, app) { [grants] arguments in
                let program = try await Program(
                    AgentPeer.mcp1.library.interpreter(in: scratch),
                    ["\(AgentPeer.folder)/leases.py", "mcp1", "http://127.0.0.1:\(port)/mcp", id] + arguments,
                    in: scratch,
                    environment: ["PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"],
                    input: .pipe
                )
                try program.write(grants.map { $0 + "\n" }.joined())
                program.closeInput()
                return try await program.waitForLine("{", within: .seconds(200))
            }
        }
    }
}
