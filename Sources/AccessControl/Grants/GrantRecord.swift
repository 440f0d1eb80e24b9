import FoundationEssentials
import Model

/// A grant as it is kept: everything but its secret.
struct GrantRecord: Hashable, Sendable, Codable {
    /// A secret that a rotation replaced.
    struct RotatedSecret: Hashable, Sendable, Codable {
        let digest: Data
        let until: MonotonicTime
    }

    /// How many replaced secrets are remembered, to notice that somebody still uses one.
    static let retiredLimit = 8

    let id: String
    /// SHA-256 of the secret.
    var digest: Data
    /// The newest last.
    var retired: [RotatedSecret] = []
    let name: SanitizedText
    let permissions: Permissions
    let binding: GrantBinding
    let parent: String?
    let invite: String?
    /// SHA-256 of the key that the redeemer sent, to know it again.
    let client: Data
    let created: MonotonicTime
    let expires: MonotonicTime
    var lastUsed: MonotonicTime
    let idle: Int
    var end: Grant.End?
    var ended: MonotonicTime?

    /// When it ends by itself, if it is not used until then.
    var deadline: MonotonicTime { min(expires, lastUsed + idle) }

    /// Why it does not count at a moment; nil when it does.
    func end(at now: MonotonicTime) -> Grant.End? {
        end ?? (now >= expires ? .expired : now >= lastUsed + idle ? .idle : nil)
    }

    /// As people see it.
    func grant(at now: MonotonicTime) -> Grant {
        Grant(
            id: id,
            name: name,
            permissions: permissions,
            binding: binding,
            parent: parent,
            invite: invite,
            created: created.date,
            expires: expires.date,
            lastUsed: lastUsed.date,
            idleSeconds: idle,
            end: end(at: now)
        )
    }
}

extension GrantBinding {
    /// Whether a call that came through this door comes from whom the grant is bound to.
    func isMet(by origin: RequestSource) -> Bool {
        switch (self, origin) {
        case (.bearer, _): true
        case (.user(let uid), .unix(let caller)): uid == caller
        case (.key(let key), .tls(_, let proved)): key == proved
        case (.user, _), (.key, _): false
        }
    }
}

/// Which door a call came through.
package enum RequestSource: Hashable, Sendable, Codable {
    /// The unix socket; the kernel says which user is at the other end.
    case unix(uid: UInt32)
    /// Plain TCP on the loopback: anybody on this machine. The address is without a port, which a caller can choose.
    case tcp(address: String)
    /// TLS from somewhere else, with the fingerprint of the key that the other side proved to have.
    case tls(address: String, key: String)
    /// Patchbay itself.
    case broker
}

extension RequestSource: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let uid): "unix:\(uid)"
        case .tcp(let address): "tcp:\(address)"
        case .tls(let address, _): "tls:\(address)"
        case .broker: "broker"
        }
    }
}
