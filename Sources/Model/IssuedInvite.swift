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
