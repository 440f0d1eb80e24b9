import TestSupport
import SystemIO
import Testing

@testable import Devices

@Suite struct UsbmuxConnectionLimitTests {
    @Test func `a budget refuses what finds no place in time, and gets back what is let go`() async throws {
        let budget = UsbmuxConnectionLimit(limit: 2)
        var leases = [try await lease(budget), try await lease(budget)]

        await #expect(throws: UsbmuxError.limit(2)) { _ = try await lease(budget) }
        leases.removeLast()
        leases.append(try await lease(budget))

        #expect(budget.used == 2)
        leases = []
        #expect(budget.used == 0)
    }

    @Test func `whoever waits for a place of a budget gets the next that is free`() async throws {
        let budget = UsbmuxConnectionLimit(limit: 1)
        var first: Permit? = try await lease(budget)

        async let second = lease(budget, within: .seconds(60))
        try await eventually("the second waits") { budget.waiting == 1 }
        _ = first
        first = nil

        let permit = try await second
        #expect(budget.used == 1)
        withExtendedLifetime(permit) {}
    }

    @Test func `as many wait for a budget as it has places, and one more is refused at once`() async throws {
        let budget = UsbmuxConnectionLimit(limit: 1)
        let first = try await lease(budget)

        let waiting = Task { try await lease(budget, within: .seconds(60)) }
        try await eventually("the second waits") { budget.waiting == 1 }

        await #expect(throws: UsbmuxError.limit(1)) { _ = try await lease(budget, within: .seconds(60)) }
        withExtendedLifetime(first) {}
        waiting.cancel()
    }

    private func lease(_ budget: UsbmuxConnectionLimit, within patience: Duration = .milliseconds(10)) async throws
        -> Permit
    {
        try await budget.lease(within: patience, clock: ContinuousClock())
    }
}
