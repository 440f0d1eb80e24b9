import FoundationEssentials
import TestSupport
import Testing

/// Many clients redeem the same invites at once over the unix socket and TCP.
@Suite(.needs(.python), .serialized, .scratchFolder) struct ConcurrentRedemptionTests {
    private let scratch = ScratchFolder.current
    private static let script =
        String(#filePath.dropLast("ConcurrentRedemptionTests.swift".count)) + "redemption_race.py"
    private static let isSoak = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1"
    private static let racers = 50

    /// The result of the race as printed by the script.
    private struct Outcome {
        let lines: [String]

        /// Returns the number before these words.
        func count(_ words: String) throws -> Int {
            let line = lines.first { $0.contains(words) }
            let number = line?.components(before: words).flatMap { Int($0) }
            return try #require(number, "\(lines)")
        }
    }

    private func race(_ words: [String], in scratch: ScratchFolder) async throws -> Outcome {
        let lines = try await Program.run(
            "python3",
            [Self.script] + words,
            in: scratch,
            within: .seconds(Self.isSoak ? 3_600 : 120)
        )
        if Self.isSoak { print(lines.joined(separator: "\n")) }
        return Outcome(lines: lines)
    }

    @Test func `each invite is redeemed by one of the racing clients, and a retry by that client succeeds`()
        async throws
    {
        let invites = Self.isSoak ? 20_000 : 400
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n")

        let outcome = try await race(["broker", broker.socket, "\(port)", "\(invites)", "\(Self.racers)"], in: scratch)

        #expect(try outcome.count(" requests:") == invites * Self.racers)
        #expect(try outcome.count(" won,") == invites)
        #expect(try outcome.count(" won twice") == 0)
        #expect(try outcome.count(" other") == 0)
        #expect(try outcome.count(" grants") == invites)
        #expect(try outcome.count(" invites") == invites)
        // Equal to all invites if the second request of each pair arrives within 1 min.
        let again = try outcome.count(" again")
        #expect(Self.isSoak ? again > 0 : again == invites, "\(outcome.lines)")
        #expect(try await broker.ask("audit", "--verify").first?.hasPrefix("The audit log is valid: ") == true)
    }

    @Test func `the race detects a server that checks first and writes later`() async throws {
        let outcome = try await race(["control", "40", "\(Self.racers)"], in: scratch)

        #expect(try outcome.count(" won,") == 40)
        #expect(try outcome.count(" won twice") > 0)
    }
}

extension String {
    /// The word before these words.
    fileprivate func components(before words: String) -> Substring? {
        firstRange(of: words).map { self[..<$0.lowerBound] }?.split(separator: " ").last
    }
}
