import Glibc
import TestSupport
import Testing

@testable import Tunnels

@Suite struct RelaySocketTests {
    @Test func `a TCP socket sends small writes without delay`() async throws {
        let (_, accepted) = try await SocketStream.tcpPair()
        let end = RelaySocket(accepted.handOver())

        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(end.number, CInt(IPPROTO_TCP), TCP_NODELAY, &value, &length)

        #expect(value == 1)
    }

    @Test func `a socket is flushed after the peer has read every byte`() async throws {
        let (one, other) = SocketStream.pair()
        var end = RelaySocket(one.handOver())

        let sent = Pattern.bytes(0..<1_000).withUnsafeBytes { end.send($0) }
        #expect(sent == 1_000)
        let isFlushedEarly = end.isFlushed
        _ = try await other.receive(1_000)

        let isFlushed = end.isFlushed
        #expect(!isFlushedEarly && isFlushed)
    }
}
