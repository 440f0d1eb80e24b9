package import Model

/// What happens to tunnels, in order.
package enum TunnelEvent: Hashable, Sendable {
    case opened(Tunnel)
    /// Its state is another one now.
    case changed(Tunnel)
    /// A client connected and got no stream, or the target broke it off. The client was reset.
    case connectionFailed(tunnel: String, DialError)
    /// Its connections are cut and its local address is free.
    case removed(id: String)
}
