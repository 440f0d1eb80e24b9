import FoundationEssentials
import Model

/// A stored grant, without its secret.
struct GrantRecord: Hashable, Sendable, Codable {
    let id: String
    /// SHA-256 of the secret. OAuth replaces it.
    var digest: Data
    let name: SanitizedText
    let permissions: Permissions
    let binding: GrantBinding
    let parent: String?
    let invite: String?
    /// SHA-256 of the redeemer's client key, which identifies a repeated redemption.
    let client: Data
    let createdAt: MonotonicTime
    let expiresAt: MonotonicTime
    var lastUsedAt: MonotonicTime
    let idleSeconds: Int
    /// True if the grant is valid at the remote listener; nil means false.
    var remote: Bool?
    var endReason: Grant.EndReason?
    var endedAt: MonotonicTime?
    /// The part that only grants of OAuth have.
    var oauth: OAuthGrant?

    /// Time at which the grant expires without further use.
    var deadline: MonotonicTime { min(expiresAt, lastUsedAt + idleSeconds) }

    /// Returns the reason why the grant is invalid at a time; nil when the grant is valid.
    func endReason(at now: MonotonicTime) -> Grant.EndReason? {
        endReason ?? (now >= expiresAt ? .expired : now >= lastUsedAt + idleSeconds ? .idle : nil)
    }

    /// Returns the grant for display.
    func grant(at now: MonotonicTime) -> Grant {
        Grant(
            id: id,
            name: name,
            permissions: permissions,
            binding: binding,
            remote: remote,
            parent: parent,
            invite: invite,
            createdAt: createdAt.date,
            expiresAt: expiresAt.date,
            lastUsedAt: lastUsedAt.date,
            idleSeconds: idleSeconds,
            resource: oauth?.resource,
            endReason: endReason(at: now)
        )
    }
}

extension GrantRecord {
    /// Returns whether the grant's token is accepted from a source. `user` is the user of a TCP client, as the kernel reports
    /// the user.
    func isUsable(from source: RequestSource, user: UInt32? = nil) -> Bool {
        if case .remote = source, remote != true { return false }
        return binding.isMet(by: source, user: user)
    }
}

extension GrantBinding {
    /// Returns whether a request with a token comes from the user that the grant is bound to.
    func isMet(by source: RequestSource, user: UInt32? = nil) -> Bool {
        switch (self, source) {
        case (.bearer, _): true
        case (.user(let uid), .unix(let caller)): uid == caller
        case (.dashboard(let uid), .tcp): uid == user
        case (.user, _), (.key, _), (.socket, _), (.dashboard, _): false
        }
    }
}

/// The kind of connection that a request came over.
package enum RequestSource: Hashable, Sendable, Codable {
    /// The unix socket. The kernel reports the user of the peer (SO_PEERCRED).
    case unix(uid: UInt32)
    /// Plain TCP on loopback: any user of this machine. The address has no port, because a client can choose its port.
    case tcp(address: String)
    /// The remote listener: TLS from another machine. The address has no port.
    case remote(address: String)
    /// The socket of a grant, over which every client has that grant.
    case socket(grant: String)
    /// The broker itself.
    case broker
}

extension RequestSource: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let uid): "unix:\(uid)"
        case .tcp(let address): "tcp:\(address)"
        case .remote(let address): "remote:\(address)"
        case .socket(let grant): "socket:\(grant)"
        case .broker: "broker"
        }
    }
}
