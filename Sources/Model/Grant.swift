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

/// Who, beside holding the token, one must be to use a grant.
package enum GrantBinding: Hashable, Sendable, Codable {
    /// Nobody else: whoever has the token.
    case bearer
    /// A process of this user, on the unix socket.
    case user(UInt32)
    /// Whoever proved to have this key: the SHA-256 of its SubjectPublicKeyInfo, in lower-case hexadecimal.
    case key(String)
}

/// In JSON `"bearer"`, `{"user": 1001}` or `{"key": "…"}`.
extension GrantBinding {
    private enum Keys: String, CodingKey { case user, key }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            guard word == "bearer" else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "a binding's only word is \"bearer\"")
                )
            }
            self = .bearer
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        if let user = try container.decodeIfPresent(UInt32.self, forKey: .user) {
            self = .user(user)
        } else {
            self = .key(try container.decode(String.self, forKey: .key))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .bearer:
            var container = encoder.singleValueContainer()
            try container.encode("bearer")
        case .user(let user):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(user, forKey: .user)
        case .key(let key):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(key, forKey: .key)
        }
    }
}

/// A grant with its secret: the answer to a redemption, a rotation and a delegation, which is the only time that it is told.
package struct IssuedGrant: Sendable, Codable {
    package let grant: Grant
    /// `pbg_…`: a secret, to be sent as `Authorization: Bearer pbg_…`.
    package let token: String

    package init(grant: Grant, token: String) {
        self.grant = grant
        self.token = token
    }
}

/// What part of a grant somebody else is to get: the body of `POST /v1/grants/{id}/delegate`.
package struct DelegationSpec: Hashable, Sendable, Codable {
    package var name: SanitizedText
    package var permissions: Permissions
    /// Seconds that it lives. Nil is 8 hours, or what is left of the grant above it.
    package var lifetime: Int?
    /// Seconds that it may rest unused. Nil is two hours.
    package var idle: Int?
    /// The only user whose processes may use it, on the unix socket. Nil: whoever has the token.
    package var user: UInt32?

    package init(
        name: SanitizedText,
        permissions: Permissions,
        lifetime: Int? = nil,
        idle: Int? = nil,
        user: UInt32? = nil
    ) {
        self.name = name
        self.permissions = permissions
        self.lifetime = lifetime
        self.idle = idle
        self.user = user
    }
}

/// How a grant's secret is to be replaced: the body of `POST /v1/grants/{id}/rotate`.
package struct RotationSpec: Hashable, Sendable, Codable {
    /// Seconds that the old secret goes on counting: 0 to 60. Nil is none.
    package var grace: Int?

    package init(grace: Int? = nil) { self.grace = grace }
}

/// The ids of the grants and invites that ended: the answer to a revocation. When it comes, everything of theirs is cut.
package struct RevocationResult: Hashable, Sendable, Codable {
    package let ended: [String]

    package init(ended: [String]) { self.ended = ended }
}
