import CLinux
import Glibc

/// Makes two connected TCP sockets of this process on 127.0.0.1, both non-blocking and close-on-exec.
///
/// TCP tells an end from a failure: a socket that is closed with `Descriptor.reset()` gives ECONNRESET at the other end.
/// The sockets of socketpair(2) report every close as EOF, so a stream that was cut would look complete.
/// - Returns: The descriptors, which the caller must close.
/// - Throws: `SocketError`.
package func loopbackSocketPair() throws -> (first: CInt, second: CInt) {
    // Attempts until the accepted socket is the one that this process connected.
    let attempts = 16
    let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0), backlog: CInt(attempts))
    let bound = listener.address
    let client = try bound.makeSocket()
    let code = try bound.startConnect(client.number)
    guard code == 0 || code == EINPROGRESS else {
        throw SocketError.failed(call: "connect", on: "\(bound)", code: code)
    }
    let own = SocketAddress.local(of: client.number)
    for _ in 0..<attempts {
        // The connection is in the queue when connect(2) returns, because both ends are on this machine.
        let accepted = CLinux_accept(listener.number)
        try SocketError.check(accepted, "accept4", on: "\(bound)")
        let server = Descriptor(owning: accepted)
        // Another local program may have found the port in this moment.
        guard let own, SocketAddress.peer(of: accepted) == own else { continue }
        SocketOption.setNoDelay(client.number)
        SocketOption.setNoDelay(accepted)
        return (client.release(), server.release())
    }
    throw SocketError.failed(call: "accept4", on: "\(bound)", code: ECONNABORTED)
}
