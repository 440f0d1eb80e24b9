package import Model

/// What happens to tunnels that stand for as long as they are held.
package enum EphemeralTunnelEvent: Hashable, Sendable {
    /// They listen; in the order in which they were asked for. Comes first.
    case opened([Tunnel])
    /// A connection through one of them did not come about.
    case failure(TunnelConnectionFailure)
}
