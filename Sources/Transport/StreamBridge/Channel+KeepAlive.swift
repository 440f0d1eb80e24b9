import Glibc
package import NIOCore

extension Channel {
    /// Ends a TCP connection about 25 s after its peer vanished without a word, although nothing is sent (tcp(7)).
    ///
    /// The peer may have reset the connection while the network between the two was interrupted. A reset is sent once only.
    /// Call it on the event loop.
    package func setKeepAlive() throws {
        guard let options = syncOptions else { return }
        try options.setOption(.socketOption(.so_keepalive), value: 1)
        try options.setOption(.tcpOption(NIOBSDSocket.Option(rawValue: TCP_KEEPIDLE)), value: 10)
        try options.setOption(.tcpOption(NIOBSDSocket.Option(rawValue: TCP_KEEPINTVL)), value: 5)
        try options.setOption(.tcpOption(NIOBSDSocket.Option(rawValue: TCP_KEEPCNT)), value: 3)
    }
}
