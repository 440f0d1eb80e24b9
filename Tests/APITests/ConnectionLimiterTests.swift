import Testing

@testable import API

@Suite struct ConnectionLimiterTests {
    @Test func `a client counts as present until a minute after its connection ended`() {
        let limiter = ConnectionLimiter()
        let end = ContinuousClock.now
        #expect(!limiter.hasRecentClient())

        limiter.connectionOpened()
        limiter.connectionOpened()
        limiter.connectionClosed(at: end)
        #expect(limiter.hasRecentClient(at: end + .seconds(3_600)))

        limiter.connectionClosed(at: end)
        #expect(limiter.hasRecentClient(at: end + .seconds(59)))
        #expect(!limiter.hasRecentClient(at: end + .seconds(60)))
    }
}
