package import Model

/// A change of a tunnel, in order of occurrence.
package enum TunnelChange: Hashable, Sendable {
    case opened(Tunnel)
    /// The tunnel's state changed.
    case changed(Tunnel)
    /// A client connected and was reset: the dial failed, or the target closed the stream abnormally.
    case connectionFailed(tunnel: String, DialError)
    /// The tunnel's connections are closed and its local address is free.
    case removed(id: String)
}
