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
