package import FoundationEssentials

/// A one-time pairing token, without its secret: what `patchbay invites` shows.
package struct Invite: Hashable, Sendable, Codable, Identifiable {
    /// Why it can no longer be redeemed.
    package enum End: String, Hashable, Sendable, Codable {
        case spent
        case expired
        case revoked
        /// Too many wrong secrets were tried on it.
        case burnt
    }

    package let id: String
    package let permissions: Permissions
    /// How often it can be redeemed in all, and how often it has been.
    package let uses: Int
    package let used: Int
    /// Wrong secrets that were tried on it.
    package let wrong: Int
    package let createdBy: AuditActor
    package let created: Date
    package let expires: Date
    package let end: End?

    package init(
        id: String,
        permissions: Permissions,
        uses: Int,
        used: Int,
        wrong: Int,
        createdBy: AuditActor,
        created: Date,
        expires: Date,
        end: End?
    ) {
        self.id = id
        self.permissions = permissions
        self.uses = uses
        self.used = used
        self.wrong = wrong
        self.createdBy = createdBy
        self.created = created
        self.expires = expires
        self.end = end
    }
}
