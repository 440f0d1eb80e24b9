import CLinux
import Glibc
import Model
import SystemIO

/// A tunnel in the event loop. Belongs to the loop's thread.
final class LoopTunnel {
    let listener: TunnelListener
    /// Nil if the target has to be looked up for each connection.
    var target: TargetSnapshot?
    /// True until the first connection after a change of the target.
    var reportsConnected = true

    init(_ listener: TunnelListener) { self.listener = listener }

    /// Reports a connection, once after each change of the target.
    func connected(after duration: Duration) {
        listener.metrics.connected(after: duration)
        guard reportsConnected, let target else { return }
        reportsConnected = false
        listener.report(.connected(target.generation))
    }
}

/// Accepts the clients of one listening socket. Belongs to the loop's thread.
final class Acceptor {
    /// The result of an attempt to accept.
    enum AcceptResult {
        case client(CInt, SocketAddress?)
        /// No client waits, or too many connections are in progress.
        case empty
        /// The time of the next attempt is after this delay.
        case failed(Duration)
    }

    /// The maximum number of accepted connections in one turn of the loop.
    static let batch = 64

    let tunnel: LoopTunnel
    let socket: Listener
    /// The number of accepted connections that are not relayed yet.
    var inProgress = 0
    /// True if clients wait because too many connections are in progress.
    var isFull = false
    /// True while the process has no free descriptor.
    var isStarved = false
    var isWatched = false
    private var backoff: Backoff

    init(_ socket: Listener, of tunnel: LoopTunnel) {
        self.socket = socket
        self.tunnel = tunnel
        let limits = tunnel.listener.limits
        backoff = Backoff(from: limits.acceptBackoff, to: limits.maxAcceptBackoff)
        RelaySocket.setOptions(socket.number)
    }

    /// Accepts the next client.
    func accept() -> AcceptResult {
        isFull = inProgress >= tunnel.listener.limits.concurrentDials
        if isFull { return .empty }
        while true {
            var peer = sockaddr_storage()
            let number = CLinux_accept_from(socket.number, &peer)
            switch number < 0 ? errno : 0 {
            case 0:
                succeeded()
                return .client(number, SocketAddress(peer))
            case EAGAIN:
                succeeded()
                return .empty
            case EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
                return .failed(failed("accept4", code: errno))
            default: continue  // An error of one connection, which has left the queue (accept(2)).
            }
        }
    }

    /// Handles a working accept queue.
    private func succeeded() {
        isStarved = false
        if backoff.total > .zero { tunnel.listener.report(.listening(error: nil)) }
        backoff.reset()
    }

    /// Handles an error of the listening socket.
    ///
    /// - Returns: The delay before the next attempt. The error may be temporary, for example after a network change.
    func failed(_ call: String, code: Int32) -> Duration {
        let error = SocketError.failed(call: call, on: "\(socket.address)", code: code)
        let limits = tunnel.listener.limits
        if error.isExhaustion {
            if !isStarved { tunnel.listener.report(.outOfDescriptors("\(error)")) }
            isStarved = true
            return limits.acceptBackoff
        }
        if backoff.total == .zero { tunnel.listener.report(.listening(error: "\(error)")) }
        return backoff.next()
    }
}
