import Glibc
import SystemIO
import TestSupport
import Testing

@Suite struct SocketOptionTests {
    private static func option(_ level: CInt, _ name: CInt, of descriptor: CInt) throws -> CInt {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        try #require(getsockopt(descriptor, level, name, &value, &length) == 0)
        return value
    }

    @Test func `the kernel finds a vanished peer of an idle connection within two minutes`() async throws {
        let (stream, _) = try await SocketStream.tcpPair()

        SocketOption.setKeepAlive(stream.number)

        #expect(try Self.option(SOL_SOCKET, SO_KEEPALIVE, of: stream.number) == 1)
        let tcp = CInt(IPPROTO_TCP)
        let idle = try Self.option(tcp, TCP_KEEPIDLE, of: stream.number)
        let probes = try Self.option(tcp, TCP_KEEPCNT, of: stream.number)
        #expect(try idle + probes * Self.option(tcp, TCP_KEEPINTVL, of: stream.number) == 120)
    }
}
