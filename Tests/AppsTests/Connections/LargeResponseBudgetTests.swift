import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// The bytes of large responses, with limits of 4 MiB by app and 8 MiB in total.
@Suite struct LargeResponseBudgetTests {
    private static let mebibyte = 1 << 20

    private let budget = LargeResponseBudget(appLimit: 4 << 20, totalLimit: 8 << 20)
    private let clock = PollerClock()
    private let aborted = Replay<String>()

    private func begin(_ app: String) throws -> LargeResponseReservation {
        budget.begin(for: try #require(EndpointID(app))) { [aborted] in aborted.say(app) }
    }

    private func reserve(_ megabytes: Int, for reservation: LargeResponseReservation) async throws {
        try await reservation.reserve(megabytes * Self.mebibyte, within: .seconds(60), clock: clock)
    }

    @Test func `apps that stall in the middle of a response delay no other app`() async throws {
        var stalled: [LargeResponseReservation] = []
        for number in 1...5 {
            stalled.append(try begin("stalled-\(number)"))
            try await reserve(1, for: stalled[number - 1])
        }
        let other = try begin("other")

        try await reserve(3, for: other)

        #expect(budget.waiting == 0 && aborted.soFar.isEmpty)
        withExtendedLifetime(stalled) {}
    }

    @Test func `a second response waits for the first one of its app, and the first one never waits`() async throws {
        let (first, second) = (try begin("shop"), try begin("shop"))
        try await reserve(3, for: first)
        try await reserve(1, for: second)

        async let grown: Void = reserve(2, for: second)
        try await eventually("the second response waits") { budget.waiting == 1 }
        try await reserve(5, for: first)
        #expect(budget.waiting == 1)
        first.release()

        try await grown
        #expect(budget.reserved == 2 * Self.mebibyte)
    }

    @Test func `a wait ends with the time limit of the caller`() async throws {
        let (first, second) = (try begin("shop"), try begin("shop"))
        try await reserve(4, for: first)

        await #expect(throws: ExchangeError.timedOut(seconds: 0)) {
            try await second.reserve(Self.mebibyte, within: .milliseconds(1), clock: clock)
        }
        #expect(budget.waiting == 0)
    }

    @Test func `at the total limit the app with the most bytes loses its largest response`() async throws {
        let (greedy, modest, late) = (try begin("greedy"), try begin("modest"), try begin("late"))
        try await reserve(5, for: greedy)
        try await reserve(2, for: modest)

        try await reserve(2, for: late)

        #expect(aborted.soFar == ["greedy"])
        #expect(throws: ExchangeError.self) { try greedy.check() }
        await #expect(throws: ExchangeError.self) { try await reserve(6, for: greedy) }
        try modest.check()
        #expect(budget.reserved == 4 * Self.mebibyte)
    }

    @Test func `a complete response is not aborted`() async throws {
        let (complete, late) = (try begin("complete"), try begin("late"))
        try await reserve(8, for: complete)
        complete.complete()

        await #expect(throws: ExchangeError.self) { try await reserve(1, for: late) }

        #expect(aborted.soFar == ["late"])
        try complete.check()
    }

    @Test func `a released response returns its bytes`() async throws {
        do {
            let response = try begin("shop")
            try await reserve(3, for: response)
        }

        #expect(budget.reserved == 0)
    }
}
