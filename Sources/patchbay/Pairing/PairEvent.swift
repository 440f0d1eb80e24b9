import Model

/// One line of `patchbay pair --json`: what happened, with the members that belong to it.
struct PairEvent: Encodable {
    /// `open`, `joined` or `closed`.
    var event: String
    var invite: Invite?
    /// `PATCHBAY:1:…`, a secret; only when it opens.
    var pairing: String?
    /// `pbi_…`, a secret; only when it opens.
    var token: String?
    var grant: Grant?
    /// Why it closed.
    var end: Invite.End?
}
