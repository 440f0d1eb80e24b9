package import FoundationEssentials

/// What a redeemer holds: scoped, expiring, revocable. Without its secret: what `patchbay grants` shows.
package struct Grant: Hashable, Sendable, Codable, Identifiable {
    /// Why it no longer counts.
    package enum End: String, Hashable, Sendable, Codable {
        case expired
        /// It was not used for as long as it may rest.
        case idle
        case revoked
        /// An old secret of it was used after a rotation: somebody has a copy.
        case reused
    }

    package let id: String
    /// What the redeemer calls itself.
    package let name: SanitizedText
    package let permissions: Permissions
    package let binding: GrantBinding
    /// The grant it was made under; when that one ends, so does this.
    package let parent: String?
    /// The invite it came from.
    package let invite: String?
    package let created: Date
    package let expires: Date
    package let lastUsed: Date
    /// How long it may rest unused, in seconds.
    package let idleSeconds: Int
    package let end: End?

    package init(
        id: String,
        name: SanitizedText,
        permissions: Permissions,
        binding: GrantBinding,
        parent: String?,
        invite: String?,
        created: Date,
        expires: Date,
        lastUsed: Date,
        idleSeconds: Int,
        end: End?
    ) {
        self.id = id
        self.name = name
        self.permissions = permissions
        self.binding = binding
        self.parent = parent
        self.invite = invite
        self.created = created
        self.expires = expires
        self.lastUsed = lastUsed
        self.idleSeconds = idleSeconds
        self.end = end
    }
}
