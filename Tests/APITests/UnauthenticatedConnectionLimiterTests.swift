import NIOCore
import NIOEmbedded
import Testing

@testable import API

@Suite struct UnauthenticatedConnectionLimiterTests {
    private let limiter = UnauthenticatedConnectionLimiter()

    private func connection(from address: String) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: address, port: 1)).wait()
        limiter.accepted(channel)
        return channel
    }

    @Test(arguments: [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8:0:1::1")])
    func `at the limit, the client with the most connections loses its oldest one`(busy: String, other: String) throws {
        let first = try connection(from: other)
        let flood = try (1..<UnauthenticatedConnectionLimiter.maxConnections).map { _ in try connection(from: busy) }
        #expect(limiter.refusedHandshakes == 0)

        let second = try connection(from: other)
        flood[0].embeddedEventLoop.run()

        #expect(!flood[0].isActive && flood[1...].allSatisfy { $0.isActive })
        #expect(first.isActive && second.isActive)
        #expect(limiter.refusedHandshakes == 1)
    }

    @Test func `a connection counts after its handshake, until it shows a grant`() throws {
        let silent = try connection(from: "10.0.0.1")
        let granted = try connection(from: "10.0.0.1")
        limiter.handshakeCompleted(on: silent)
        limiter.handshakeCompleted(on: granted)
        limiter.authenticated(granted)
        #expect(limiter.count == 1)

        let limit = UnauthenticatedConnectionLimiter.maxConnections
        let flood = try (0..<limit).map { _ in try connection(from: "10.0.0.1") }
        silent.embeddedEventLoop.run()

        #expect(!silent.isActive && granted.isActive && flood.allSatisfy { $0.isActive })
        #expect(limiter.refusedHandshakes == 0)
    }

    @Test func `a machine cannot hide behind the addresses of its IPv6 network`() throws {
        let networks = try ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"].map {
            UnauthenticatedConnectionLimiter.network(of: try SocketAddress(ipAddress: $0, port: 1))
        }

        #expect(networks[0] == networks[1] && networks[0] != networks[2])
    }
}
