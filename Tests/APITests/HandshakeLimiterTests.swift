import NIOCore
import NIOEmbedded
import Testing

@testable import API

@Suite struct HandshakeLimiterTests {
    private let limiter = HandshakeLimiter()

    private func handshake(from address: String) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: address, port: 1)).wait()
        limiter.began(on: channel)
        return channel
    }

    @Test(arguments: [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8:0:1::1")])
    func `at the limit, the client with the most handshakes loses its oldest one`(busy: String, other: String) throws {
        let first = try handshake(from: other)
        let flood = try (1..<HandshakeLimiter.maxHandshakes).map { _ in try handshake(from: busy) }
        #expect(limiter.refused == 0)

        let second = try handshake(from: other)
        flood[0].embeddedEventLoop.run()

        #expect(!flood[0].isActive && flood[1...].allSatisfy { $0.isActive })
        #expect(first.isActive && second.isActive)
        #expect(limiter.refused == 1)
    }

    @Test func `a machine cannot hide behind the addresses of its IPv6 network`() throws {
        let networks = try ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"].map {
            HandshakeLimiter.network(of: try SocketAddress(ipAddress: $0, port: 1))
        }

        #expect(networks[0] == networks[1] && networks[0] != networks[2])
    }
}
