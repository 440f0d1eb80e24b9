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
