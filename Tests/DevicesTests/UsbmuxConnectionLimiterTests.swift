import TestSupport
import SystemIO
import Testing

@testable import Devices

@Suite struct UsbmuxConnectionLimitTests {
    @Test func `a full limit rejects a stream after the timeout, and released permits are available again`()
        async throws
    {
        let connectionLimit = UsbmuxConnectionLimiter(limit: 2)
        var permits = [try await acquire(connectionLimit), try await acquire(connectionLimit)]

        await #expect(throws: UsbmuxError.tooManyConnections(2)) { _ = try await acquire(connectionLimit) }
        permits.removeLast()
        permits.append(try await acquire(connectionLimit))

        #expect(connectionLimit.used == 2)
        permits = []
        #expect(connectionLimit.used == 0)
    }

    @Test func `a waiting task gets the next released permit`() async throws {
        let connectionLimit = UsbmuxConnectionLimiter(limit: 1)
        var first: Permit? = try await acquire(connectionLimit)

        async let second = acquire(connectionLimit, within: .seconds(60))
        try await eventually("the second waits") { connectionLimit.waiting == 1 }
        _ = first
        first = nil

        let permit = try await second
        #expect(connectionLimit.used == 1)
        withExtendedLifetime(permit) {}
    }

    @Test func `as many tasks may wait as there are permits, and one more is rejected at once`() async throws {
        let connectionLimit = UsbmuxConnectionLimiter(limit: 1)
        let first = try await acquire(connectionLimit)

        let waiting = Task { try await acquire(connectionLimit, within: .seconds(60)) }
        try await eventually("the second waits") { connectionLimit.waiting == 1 }

        await #expect(throws: UsbmuxError.tooManyConnections(1)) {
            _ = try await acquire(connectionLimit, within: .seconds(60))
        }
        withExtendedLifetime(first) {}
        waiting.cancel()
    }

    private func acquire(_ connectionLimit: UsbmuxConnectionLimiter, within timeout: Duration = .milliseconds(10))
        async throws
        -> Permit
    {
        try await connectionLimit.acquire(within: timeout, clock: ContinuousClock())
    }
}
