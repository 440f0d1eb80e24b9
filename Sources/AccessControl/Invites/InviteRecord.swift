import FoundationEssentials
import Model

/// An invite as it is kept: everything but its secret.
struct InviteRecord: Hashable, Sendable, Codable {
    let id: String
    /// SHA-256 of the secret.
    let digest: Data
    let permissions: Permissions
    let uses: Int
    var used = 0
    /// Wrong secrets tried on it so far; kept, so that a restart gives no new tries.
    var wrong = 0
    let createdBy: AuditActor
    /// The grant under which it was made, and under which what it gives will stand.
    let parent: String?
    let created: MonotonicTime
    let expires: MonotonicTime
    /// How long the grants that it gives live, and how long they may rest unused, in seconds.
    let life: Int
    let idle: Int
    /// Whom the grants are bound to; nil where the redeemer's door decides.
    let binding: GrantBinding?
    var end: Invite.End?

    /// As people see it.
    var invite: Invite {
        Invite(
            id: id,
            permissions: permissions,
            uses: uses,
            used: used,
            wrong: wrong,
            createdBy: createdBy,
            created: created.date,
            expires: expires.date,
            end: end
        )
    }
}
