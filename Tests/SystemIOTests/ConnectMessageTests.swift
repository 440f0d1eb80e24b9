import Glibc
import Testing

@testable import SystemIO

@Suite struct ConnectMessageTests {
    @Test func `a route that leads nowhere is named, and not an invalid argument`() {
        #expect(SocketError.message(forConnect: EINVAL) == "a route of this machine leads nowhere (blackhole)")
        #expect(SocketError.message(forConnect: EACCES).contains("route or the firewall"))
        #expect(SocketError.message(forConnect: ENETUNREACH) == "Network is unreachable")
    }
}
