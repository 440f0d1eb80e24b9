import NIOCore
import NIOEmbedded
import Samples
import Testing

@testable import API

@Suite struct ConnectionLimiterTests {
    @Test func `a client counts as present until a minute after its connection ended`() {
        let limiter = ConnectionLimiter()
        let end = ContinuousClock.now
        #expect(!limiter.hasRecentClient())

        #expect(limiter.openConnection(in: .owners))
        #expect(limiter.openConnection(in: .owners))
        limiter.connectionClosed(in: .owners, at: end)
        #expect(limiter.hasRecentClient(at: end + .seconds(3_600)))

        limiter.connectionClosed(in: .owners, at: end)
        #expect(limiter.hasRecentClient(at: end + .seconds(59)))
        #expect(!limiter.hasRecentClient(at: end + .seconds(60)))
    }

    @Test func `the first client and a client after a minute without clients are reported`() async {
        let limiter = ConnectionLimiter()
        let end = ContinuousClock.now
        var arrivals = limiter.arrivals().makeAsyncIterator()

        #expect(limiter.openConnection(in: .owners, at: end))
        #expect(await arrivals.next() != nil)

        limiter.connectionClosed(in: .owners, at: end)
        #expect(limiter.openConnection(in: .owners, at: end + .seconds(60)))
        #expect(await arrivals.next() != nil)
    }

    @Test func `remote clients leave places for clients on loopback and for owners`() {
        let limiter = ConnectionLimiter()
        var remote = 0
        while limiter.openConnection(in: .remote) { remote += 1 }
        #expect(remote == ConnectionLimiter.maxRemote)
        #expect(limiter.remoteConnections == remote)

        var local = 0
        while limiter.openConnection(in: .loopback) { local += 1 }
        #expect(local == ConnectionLimiter.maxConnections - ConnectionLimiter.reservedForOwners - remote)
        #expect(limiter.hasCapacity(in: .owners))

        limiter.connectionClosed(in: .remote)
        #expect(limiter.hasCapacity(in: .remote))
    }

    @Test func `local clients at their limit also stop remote ones`() {
        let limiter = ConnectionLimiter()
        while limiter.openConnection(in: .loopback) {}

        #expect(!limiter.hasCapacity(in: .remote))
        #expect(limiter.hasCapacity(in: .owners))
    }

    @Test func `clients on the sockets of grants leave places for clients on loopback and for owners`() {
        let limiter = ConnectionLimiter()
        var count = 0
        while limiter.openConnection(in: .grantSockets) { count += 1 }

        #expect(count == ConnectionLimiter.maxOnGrantSockets)
        #expect(limiter.hasCapacity(in: .loopback) && limiter.hasCapacity(in: .remote))
        limiter.connectionClosed(in: .grantSockets)
        #expect(limiter.hasCapacity(in: .grantSockets))
    }

    @Test func `connections above the limit wait, whatever the number of listeners`() throws {
        let limiter = ConnectionLimiter()
        let listeners = (0..<20).map { _ in EmbeddedChannel() }
        for listener in listeners {
            let handler = AcceptThrottleHandler(
                logger: .quiet,
                limiter: limiter,
                share: .grantSockets,
                unauthenticated: nil,
                onStopped: {}
            )
            try listener.pipeline.syncOperations.addHandler(handler)
            for _ in 0..<20 { listener.pipeline.fireChannelRead(EmbeddedChannel() as any Channel) }
        }
        func passedOn(by listeners: some Sequence<EmbeddedChannel>) throws -> [any Channel] {
            try listeners.flatMap { listener in
                var channels: [any Channel] = []
                while let channel = try listener.readInbound(as: (any Channel).self) { channels.append(channel) }
                return channels
            }
        }
        let first = try passedOn(by: listeners)
        #expect(first.count == ConnectionLimiter.maxOnGrantSockets)
        #expect(limiter.hasCapacity(in: .owners))

        // A place that becomes free goes to a connection that waits.
        first[0].close(promise: nil)
        (first[0] as? EmbeddedChannel)?.embeddedEventLoop.run()
        listeners[19].embeddedEventLoop.advanceTime(by: AcceptThrottleHandler.retryInterval)
        #expect(try passedOn(by: listeners).count == 1)
        #expect(!limiter.hasCapacity(in: .grantSockets))
    }

    @Test func `idle connections of an owner make room for other clients, the longest idle one first`() throws {
        let limiter = ConnectionLimiter()
        let start = ContinuousClock.now
        let owners = (0..<ConnectionLimiter.maxConnections).map { number in
            let channel = EmbeddedChannel()
            #expect(limiter.openConnection(in: .owners))
            limiter.addOwner(channel, at: start + .seconds(number))
            return channel
        }
        for channel in owners { try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait() }
        // The first one has a request, and the second one had a request later than the third one.
        limiter.requestBegan(on: owners[0])
        limiter.requestBegan(on: owners[1])
        limiter.requestEnded(on: owners[1], at: start + .seconds(1_000))

        let end = start + .seconds(1_001)
        #expect(limiter.hasCapacity(in: .loopback, at: end))
        #expect(limiter.openConnection(in: .loopback, at: end))

        #expect(owners.map(\.isActive) == [true, true, false] + owners.dropFirst(3).map { _ in true })
    }

    @Test func `a new connection of an owner has 250 ms for its first request`() {
        let limiter = ConnectionLimiter()
        let start = ContinuousClock.now
        for _ in 0..<ConnectionLimiter.maxConnections {
            #expect(limiter.openConnection(in: .owners))
            limiter.addOwner(EmbeddedChannel(), at: start)
        }

        #expect(!limiter.openConnection(in: .loopback, at: start + .milliseconds(249)))
        #expect(limiter.openConnection(in: .loopback, at: start + .milliseconds(250)))
    }

    @Test func `connections of an owner with requests in progress are not closed`() {
        let limiter = ConnectionLimiter()
        let owners = (0..<ConnectionLimiter.maxConnections).map { _ in EmbeddedChannel() }
        for channel in owners {
            #expect(limiter.openConnection(in: .owners))
            limiter.addOwner(channel)
            limiter.requestBegan(on: channel)
        }

        #expect(!limiter.hasCapacity(in: .owners) && !limiter.openConnection(in: .loopback))
    }

    @Test func `event streams leave half of the connections for requests that end`() throws {
        let limiter = ConnectionLimiter()
        let owners = (0..<ConnectionLimiter.maxConnections).map { _ in EmbeddedChannel() }
        for channel in owners {
            limiter.addOwner(channel)
            limiter.requestBegan(on: channel)
        }
        #expect(owners.count { limiter.beginStream(on: $0) } == ConnectionLimiter.maxConnections / 2)

        // The end of a stream and of its connection free a place each.
        limiter.requestEnded(on: owners[0])
        #expect(limiter.beginStream(on: owners[200]) && !limiter.beginStream(on: owners[201]))
        owners[1].close(promise: nil)
        owners[1].embeddedEventLoop.run()
        #expect(limiter.beginStream(on: owners[201]) && !limiter.beginStream(on: owners[202]))
        // The connections of other clients have limits of their own.
        #expect(limiter.beginStream(on: EmbeddedChannel()))
    }
}
