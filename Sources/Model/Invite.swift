package import FoundationEssentials

/// A one-time pairing token, without its secret. `patchbay invites` shows it.
package struct Invite: Hashable, Sendable, Codable, Identifiable {
    /// The reason why the invite can no longer be redeemed.
    package enum EndReason: String, Hashable, Sendable, Codable {
        case spent
        case expired
        case revoked
        /// Too many wrong secrets were tried.
        case burnt
    }

    package let id: String
    package let permissions: Permissions
    /// The clients that may redeem it. Nil means `local`.
    package let use: InviteUse?
    /// The maximum number of redemptions, and the number so far.
    package let maxUses: Int
    package let useCount: Int
    /// The number of attempts with a wrong secret.
    package let failedAttempts: Int
    package let createdBy: AuditActor
    package let createdAt: Date
    package let expiresAt: Date
    package let endReason: EndReason?

    package init(
        id: String,
        permissions: Permissions,
        use: InviteUse? = nil,
        maxUses: Int,
        useCount: Int,
        failedAttempts: Int,
        createdBy: AuditActor,
        createdAt: Date,
        expiresAt: Date,
        endReason: EndReason?
    ) {
        self.id = id
        self.permissions = permissions
        self.use = use
        self.maxUses = maxUses
        self.useCount = useCount
        self.failedAttempts = failedAttempts
        self.createdBy = createdBy
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.endReason = endReason
    }
}

/// The clients that may redeem an invite, and how they use the grant.
package enum InviteUse: String, Hashable, Sendable, Codable {
    /// Clients on this machine.
    case local
    /// Also clients at the remote listener with a TLS key of their own. Their grants are bound to that key.
    case remote
    /// Clients that can send only a token. It is valid on this machine and at the remote listener.
    case bearer
    /// Apps, which register themselves with a token. It is valid on this machine and at the remote listener.
    case device
}

/// The permissions and limits of a new invite: the body of `POST /v1/invites`.
package struct InviteSpec: Hashable, Sendable, Codable {
    package var permissions: Permissions
    /// The clients that may redeem it. Nil means `local`.
    package var use: InviteUse?
    /// The maximum number of redemptions, 1 to 100. Nil means 1.
    package var maxUses: Int?
    /// The lifetime of the invite in seconds, 1 s to 1 day. Nil means 10 minutes.
    package var lifetimeSeconds: Int?
    /// The lifetime of its grants in seconds, 1 s to 30 days. Nil means 8 hours, 30 days for a device, or the remaining
    /// lifetime of the inviter's grant if that is shorter.
    package var grantLifetimeSeconds: Int?
    /// The idle timeout of its grants in seconds, 1 s to 30 days. Nil means two hours, or 30 days for a device.
    package var grantIdleSeconds: Int?
    /// Restricts its grants to processes of this user on the unix socket. Nil creates bearer grants.
    package var user: UInt32?
    /// True adds the pairing string as a QR code to the response. Nil means false.
    package var qr: Bool?
    /// The broker's host name or address in the pairing string, for clients on other machines. Nil means the address of
    /// the default route.
    package var host: String?

    package static let allowedUses = 1...100
    /// Allowed lifetimes of an invite in seconds, up to one day.
    package static let lifetimes = 1...86_400
    /// Allowed lifetimes and idle timeouts of a grant in seconds, up to 30 days.
    package static let grantLifetimes = 1...2_592_000

    package init(
        _ permissions: Permissions,
        use: InviteUse? = nil,
        maxUses: Int? = nil,
        lifetimeSeconds: Int? = nil,
        grantLifetimeSeconds: Int? = nil,
        grantIdleSeconds: Int? = nil,
        user: UInt32? = nil,
        qr: Bool? = nil,
        host: String? = nil
    ) {
        self.permissions = permissions
        self.use = use
        self.host = host
        self.maxUses = maxUses
        self.lifetimeSeconds = lifetimeSeconds
        self.grantLifetimeSeconds = grantLifetimeSeconds
        self.grantIdleSeconds = grantIdleSeconds
        self.user = user
        self.qr = qr
    }
}

/// An invite with its token: the response to `POST /v1/invites`. No other response contains the token.
package struct IssuedInvite: Sendable, Codable {
    package let invite: Invite
    /// The secret token `pbi_…`.
    package let token: String
    /// The pairing string `PATCHBAY:1:HOST:PORT:PIN:TOKEN`, a secret. Nil if the broker has no TCP listener on loopback,
    /// and the invite is for this machine.
    package let pairing: String?
    /// The addresses at which other machines may reach the broker. Nil for an invite for this machine.
    package let addresses: [String]?
    /// The pairing string as a QR code, equally secret. Nil unless the request asked for the code.
    package let qr: InviteQRCode?

    package init(
        invite: Invite,
        token: String,
        pairing: String?,
        addresses: [String]? = nil,
        qr: InviteQRCode? = nil
    ) {
        self.invite = invite
        self.addresses = addresses
        self.token = token
        self.pairing = pairing
        self.qr = qr
    }
}

/// The QR code of an invite, in the form that the request asked for.
package enum InviteQRCode: Hashable, Sendable {
    /// An image in SVG with its border, for `"qr": true` in the body.
    case svg(String)
    /// The rows of modules without the border, `1` for a dark one, for `?qr=true` in the query.
    case rows([String])
}

/// Encodes as a text or as an array of texts.
extension InviteQRCode: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let svg = try? container.decode(String.self) {
            self = .svg(svg)
        } else {
            self = .rows(try container.decode([String].self))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .svg(let text): try container.encode(text)
        case .rows(let rows): try container.encode(rows)
        }
    }
}

/// A redemption of an invite: the body of `POST /v1/invites/redeem`.
package struct RedemptionSpec: Sendable, Codable {
    /// The invite token `pbi_…`.
    package let token: String
    /// A random key of 16 to 1,024 bytes, known only to the client.
    ///
    /// The same key returns the same grant again within a minute. At the remote listener, the TLS key of the client
    /// replaces this one.
    package let client: String
    package let name: SanitizedText
    /// The requested subset of the invite's permissions. Nil requests all of them.
    package let permissions: Permissions?

    package init(token: String, client: String, name: SanitizedText, permissions: Permissions? = nil) {
        self.token = token
        self.client = client
        self.name = name
        self.permissions = permissions
    }
}
