/// One thing that a grant allows.
package enum Scope: String, Hashable, Sendable, Codable, CaseIterable {
    /// See endpoints, devices and their changes.
    case registryRead = "registry.read"
    /// Call an endpoint's own tools.
    case endpointCall = "endpoint.call"
    /// Open tunnels and streams.
    case tunnelOpen = "tunnel.open"
    /// Have the broker present an endpoint's secret; the holder never sees it.
    case secretUse = "secret.use"
    /// Invite others, to no more than one may do oneself.
    case inviteCreate = "invite.create"
    /// Everything an owner may do; only over the unix socket, and never by a token alone.
    case admin
}

extension Scope: Comparable {
    package static func < (one: Scope, other: Scope) -> Bool { one.rawValue < other.rawValue }
}
