import FoundationEssentials
import TestSupport
import Testing

/// Relaunches, moves and swaps of two apps on the ports of one phone, stalls in their answers, and faults of the phone and of
/// usbmuxd, in an order that a seed gives.
///
/// Runs one round of all steps; with `PATCHBAY_SOAK=1` (`make soak`) 25 rounds.
@Suite(.needs(.usbmuxd, .python), .timeLimit(.minutes(30)), .scratchFolder) struct RelaunchScheduleTests {
    private let scratch = ScratchFolder.current
    private static let rounds = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == nil ? 1 : 25
    private static let seed: UInt64 = 28

    @Test func `relaunches, swaps, stalls and faults send no token to a wrong app and create no second ID`()
        async throws
    {
        let phone = try await AppPhone(in: scratch)
        let start = ContinuousClock.now
        var schedule = try await LaunchSchedule(on: phone, seed: Self.seed)

        for _ in 0..<Self.rounds * LaunchSchedule.Step.allCases.count { try await schedule.runStep() }

        #expect(schedule.counts.values.allSatisfy { $0 == Self.rounds })
        print(
            "launches: \(schedule.counts.values.reduce(0, +)) steps in \(ContinuousClock.now - start); tunnels "
                + "followed after at most \(schedule.longestReturns); calls of the other app took at most "
                + "\(schedule.longestOther)"
        )
    }
}
