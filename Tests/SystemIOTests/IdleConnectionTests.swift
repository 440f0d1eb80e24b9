import Glibc
import SystemIO
import TestSupport
import Testing

@Suite struct IdleConnectionTests {
    /// Returns a connection and the descriptor of its peer, which the caller closes.
    private static func pair() throws -> (IdleConnection, peer: CInt) {
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            throw TestSupportError(call: "socketpair")
        }
        _ = fcntl(numbers[0], F_SETFL, O_NONBLOCK)
        _ = fcntl(numbers[1], F_SETFL, O_NONBLOCK)
        let connection = Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .propagates)
        return (IdleConnection(connection), numbers[1])
    }

    /// Sends until the socket is full or `count` bytes are sent.
    private static func send(_ count: Int, to peer: CInt) -> Int {
        let bytes = [UInt8](repeating: 1, count: 4_096)
        var sent = 0
        while sent < count {
            let result = Glibc.send(peer, bytes, min(bytes.count, count - sent), CInt(MSG_NOSIGNAL))
            if result <= 0 { break }
            sent += result
        }
        return sent
    }

    @Test func `a connection is open until its peer ends, whatever the peer has sent before`() throws {
        let (connection, peer) = try Self.pair()
        #expect(connection.isOpen)
        for _ in 0..<100 {
            #expect(Self.send(5_000, to: peer) == 5_000)
            #expect(connection.isOpen)
        }
        #expect(Self.send(5_000, to: peer) == 5_000)
        close(peer)
        #expect(!connection.isOpen)
    }

    @Test func `a connection with more bytes than are discarded at a time ends`() throws {
        let (connection, peer) = try Self.pair()
        defer { close(peer) }
        try #require(Self.send(.max, to: peer) > 65_536)
        #expect(!connection.isOpen)
        #expect(Self.send(1, to: peer) == 0)
        for _ in 0..<10 { #expect(!connection.isOpen) }
    }
}
