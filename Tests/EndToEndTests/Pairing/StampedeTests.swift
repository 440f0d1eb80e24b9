import FoundationEssentials
import TestSupport
import Testing

/// Many at both doors who want the same invites at once.
@Suite(.needs(.python), .serialized) struct StampedeTests {
    private static let script = String(#filePath.dropLast("StampedeTests.swift".count)) + "race.py"
    private static let isSoak = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1"
    private static let racers = 50

    /// What the race came to, by the script's own words.
    private struct Outcome {
        let lines: [String]

        /// The number before these words.
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

    @Test func `each invite lets in one, however many race for it, and that one again when it asks again`() async throws
    {
        try await withScratchFolder { scratch in
            let invites = Self.isSoak ? 20_000 : 400
            let port = try FreePorts.take()[0]
            let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n")

            let outcome = try await race(
                ["broker", broker.socket, "\(port)", "\(invites)", "\(Self.racers)"],
                in: scratch
            )

            #expect(try outcome.count(" requests:") == invites * Self.racers)
            #expect(try outcome.count(" won,") == invites)
            #expect(try outcome.count(" won twice") == 0)
            #expect(try outcome.count(" other") == 0)
            #expect(try outcome.count(" grants") == invites)
            #expect(try outcome.count(" invites") == invites)
            // All of them where the second of a pair comes within its minute.
            let again = try outcome.count(" again")
            #expect(Self.isSoak ? again > 0 : again == invites, "\(outcome.lines)")
            #expect(try await broker.ask("audit", "--verify").first?.hasPrefix("The audit log is whole: ") == true)
        }
    }

    @Test func `the same race finds a door out behind which one looks first and writes later`() async throws {
        try await withScratchFolder { scratch in
            let outcome = try await race(["control", "40", "\(Self.racers)"], in: scratch)

            #expect(try outcome.count(" won,") == 40)
            #expect(try outcome.count(" won twice") > 0)
        }
    }
}

extension String {
    /// The word that ends where these begin.
    fileprivate func components(before words: String) -> Substring? {
        firstRange(of: words).map { self[..<$0.lowerBound] }?.split(separator: " ").last
    }
}
