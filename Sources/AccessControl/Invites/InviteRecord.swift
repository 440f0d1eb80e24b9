import FoundationEssentials
import Model

/// A stored invite, without its secret.
struct InviteRecord: Hashable, Sendable, Codable {
    let id: String
    /// SHA-256 of the secret.
    let digest: Data
    let permissions: Permissions
    /// Nil means `local`.
    var use: InviteUse?
    let maxUses: Int
    var useCount = 0
    /// Number of wrong secrets tried so far. Saved, so that a restart allows no further attempts.
    var failedAttempts = 0
    let createdBy: AuditActor
    /// ID of the grant under which the invite was created; parent of the invite's grants.
    let parent: String?
    let createdAt: MonotonicTime
    let expiresAt: MonotonicTime
    /// Lifetime and idle timeout of the invite's grants, in seconds.
    let grantLifetimeSeconds: Int
    let grantIdleSeconds: Int
    /// The user that the grants are bound to; nil for bearer grants.
    let binding: GrantBinding?
    var endReason: Invite.EndReason?

    /// The invite for display.
    var invite: Invite {
        Invite(
            id: id,
            permissions: permissions,
            use: use,
            maxUses: maxUses,
            useCount: useCount,
            failedAttempts: failedAttempts,
            createdBy: createdBy,
            createdAt: createdAt.date,
            expiresAt: expiresAt.date,
            endReason: endReason
        )
    }
}
