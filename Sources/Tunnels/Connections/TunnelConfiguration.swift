import Model
import SystemIO

/// The facts with which the event loop accepts and checks the clients of one tunnel.
struct TunnelConfiguration: Sendable {
    struct ListeningSocket: Sendable {
        let number: CInt
        let address: SocketAddress
    }

    /// The listening sockets; they stay open until `Relay.stopListening`.
    let sockets: [ListeningSocket]
    let spec: TunnelSpec
    /// The UID of the tunnel's owner.
    let owner: UInt32
    let ownerCheck: ClientOwnerCheck
    let limits: TunnelLimits
    let metrics: TunnelMetrics
    /// Reports an event to the tunnel table. Called on the loop's thread.
    let report: @Sendable (TunnelEvent) -> Void

    /// True if only processes of the owner may connect. A listener on a non-loopback address serves clients of other
    /// machines too.
    func checksOwner(on listener: SocketAddress) -> Bool {
        (listener.isLoopback || listener.port == nil) && !spec.allowAnyUser
    }

    /// True if a client's first bytes are inspected. Browsers cannot connect to unix sockets.
    func inspects(on listener: SocketAddress) -> Bool { listener.port != nil && !spec.allowBrowsers }
}

/// An event of the event loop for the state of a tunnel.
enum TunnelEvent: Sendable {
    /// The first connection since the last change of the target, by the snapshot with this generation.
    case connected(UInt64)
    /// A connection needs a dial on a task.
    case dial(DialRequest)
    /// Try again to listen on the tunnel's local address. Sent by the table.
    case retry
    /// The process is out of descriptors. Clients wait in the accept queue.
    case outOfDescriptors(String)
    /// The listening socket accepts no clients because of the error; nil if it accepts clients again.
    case listening(error: String?)
}

/// A tunnel in the event loop. Belongs to the loop's thread.
final class LoopTunnel {
    let configuration: TunnelConfiguration
    /// Nil if the target has to be looked up for each connection.
    var target: TargetSnapshot?
    /// True until the first connection after a change of the target.
    var reportsConnected = true

    init(_ configuration: TunnelConfiguration) { self.configuration = configuration }

    /// Reports a connection, once after each change of the target.
    func connected(after duration: Duration) {
        configuration.metrics.connected(after: duration)
        guard reportsConnected, let target else { return }
        reportsConnected = false
        configuration.report(.connected(target.generation))
    }
}

/// A listening socket in the event loop. Belongs to the loop's thread.
final class LoopListener {
    /// The maximum number of accepted connections in one turn of the loop.
    static let batch = 64

    let tunnel: LoopTunnel
    let socket: TunnelConfiguration.ListeningSocket
    /// The number of accepted connections that are not relayed yet.
    var inProgress = 0
    /// True if clients wait because too many connections are in progress.
    var isFull = false
    /// True while the process has no free descriptor.
    var isStarved = false
    var isWatched = false
    private var backoff: Backoff

    init(_ socket: TunnelConfiguration.ListeningSocket, of tunnel: LoopTunnel) {
        self.socket = socket
        self.tunnel = tunnel
        let limits = tunnel.configuration.limits
        backoff = Backoff(from: limits.acceptBackoff, to: limits.maxAcceptBackoff)
        RelaySocket.setOptions(socket.number)
    }

    /// Handles a working accept queue.
    func succeeded() {
        isStarved = false
        if backoff.total > .zero { tunnel.configuration.report(.listening(error: nil)) }
        backoff.reset()
    }

    /// Handles an error of the listening socket.
    ///
    /// - Returns: The delay before the next attempt. The error may be temporary, for example after a network change.
    func failed(_ call: String, code: Int32) -> Duration {
        let error = SocketError.failed(call: call, on: "\(socket.address)", code: code)
        let limits = tunnel.configuration.limits
        if error.isExhaustion {
            if !isStarved { tunnel.configuration.report(.outOfDescriptors("\(error)")) }
            isStarved = true
            return limits.acceptBackoff
        }
        if backoff.total == .zero { tunnel.configuration.report(.listening(error: "\(error)")) }
        return backoff.next()
    }
}
