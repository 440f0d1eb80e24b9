import Testing

@testable import API

@Suite struct ConnectionLimiterTests {
    @Test func `a client counts as present until a minute after its connection ended`() {
        let limiter = ConnectionLimiter()
        let end = ContinuousClock.now
        #expect(!limiter.hasRecentClient())

        limiter.connectionOpened(in: .owners)
        limiter.connectionOpened(in: .owners)
        limiter.connectionClosed(in: .owners, at: end)
        #expect(limiter.hasRecentClient(at: end + .seconds(3_600)))

        limiter.connectionClosed(in: .owners, at: end)
        #expect(limiter.hasRecentClient(at: end + .seconds(59)))
        #expect(!limiter.hasRecentClient(at: end + .seconds(60)))
    }

    @Test func `remote clients leave places for clients on loopback and for owners`() {
        let limiter = ConnectionLimiter()
        var remote = 0
        while limiter.hasCapacity(in: .remote) {
            limiter.connectionOpened(in: .remote)
            remote += 1
        }
        #expect(remote == ConnectionLimiter.maxRemote)
        #expect(limiter.remoteConnections == remote)

        var local = 0
        while limiter.hasCapacity(in: .loopback) {
            limiter.connectionOpened(in: .loopback)
            local += 1
        }
        #expect(local == ConnectionLimiter.maxConnections - ConnectionLimiter.reservedForOwners - remote)
        #expect(limiter.hasCapacity(in: .owners))

        limiter.connectionClosed(in: .remote)
        #expect(limiter.hasCapacity(in: .remote))
    }

    @Test func `local clients at their limit also stop remote ones`() {
        let limiter = ConnectionLimiter()
        while limiter.hasCapacity(in: .loopback) { limiter.connectionOpened(in: .loopback) }

        #expect(!limiter.hasCapacity(in: .remote))
        #expect(limiter.hasCapacity(in: .owners))
    }
}
