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

/// What an invite is to give, and how it is to be redeemed: the body of `POST /v1/invites`.
package struct InviteSpec: Hashable, Sendable, Codable {
    package var permissions: Permissions
    /// How often it can be redeemed: 1 to 100. Nil is once.
    package var uses: Int?
    /// Seconds until it can no longer be redeemed: 1 to a day. Nil is ten minutes.
    package var lifetime: Int?
    /// Seconds that its grants live: 1 to 30 days. Nil is 8 hours, or what is left of the inviter's own grant.
    package var grantLifetime: Int?
    /// Seconds that its grants may rest unused: 1 to 30 days. Nil is two hours.
    package var grantIdle: Int?
    /// The only user whose processes may use its grants, on the unix socket. Nil: whoever has the token.
    package var user: UInt32?
    /// Whether the answer is to have the pairing string as a QR code, too. Nil is no.
    package var qr: Bool?

    package init(
        _ permissions: Permissions,
        uses: Int? = nil,
        lifetime: Int? = nil,
        grantLifetime: Int? = nil,
        grantIdle: Int? = nil,
        user: UInt32? = nil,
        qr: Bool? = nil
    ) {
        self.permissions = permissions
        self.uses = uses
        self.lifetime = lifetime
        self.grantLifetime = grantLifetime
        self.grantIdle = grantIdle
        self.user = user
        self.qr = qr
    }
}

/// An invite with its secret: the answer to `POST /v1/invites`, which is the only time that it is told.
package struct IssuedInvite: Sendable, Codable {
    package let invite: Invite
    /// `pbi_…`: a secret.
    package let token: String
    /// `PATCHBAY:1:…`, for a QR code or to paste: a secret too. Nil where the broker has no door that it could name.
    package let pairing: String?
    /// The pairing string as a QR code, an SVG image: as secret as that. Where it was asked for.
    package let qr: String?

    package init(invite: Invite, token: String, pairing: String?, qr: String? = nil) {
        self.invite = invite
        self.token = token
        self.pairing = pairing
        self.qr = qr
    }
}

/// What a redeemer shows and says about itself: the body of `POST /v1/invites/redeem`.
package struct RedemptionSpec: Sendable, Codable {
    /// `pbi_…`.
    package let token: String
    /// 22 to 1,024 letters or digits from a random source, kept to itself: the same ones again within a minute bring the
    /// same grant again.
    package let client: String
    package let name: SanitizedText
    /// Less than the invite gives, if it wants less.
    package let permissions: Permissions?

    package init(token: String, client: String, name: SanitizedText, permissions: Permissions? = nil) {
        self.token = token
        self.client = client
        self.name = name
        self.permissions = permissions
    }
}
