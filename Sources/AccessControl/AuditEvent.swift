import Model

/// Something that pairing did, or refused, for the log that people read afterwards.
struct AuditEvent: Hashable, Sendable, Codable {
    enum Action: String, Hashable, Sendable, Codable {
        case invited, redeemed, refused, burnt, rotated, reused, revoked, expired
        case approved, denied
        case endpointApproved = "endpoint-approved"
        case approvalWithdrawn = "approval-withdrawn"
        case secretSet = "secret-set"
        case secretForgotten = "secret-forgotten"
        case clockRecovered = "clock-recovered"
        case repaired
        /// An app's tool, through the broker.
        case called
    }

    let action: Action
    let who: AuditActor
    let from: RequestSource
    var invite: String?
    var grant: String?
    /// Everything that ended with it: invites and grants.
    var ended: [String]?
    var endpoint: EndpointID?
    /// Which tool of the endpoint, and the bytes of its answer.
    var subject: SanitizedText?
    var bytes: Int?
    /// How often the invite has been used, this time included.
    var used: Int?
    /// Why, in words; never anything that the caller sent.
    var detail: String?
    /// Somebody should look.
    var isAlert: Bool?

    init(_ action: Action, by who: AuditActor, from: RequestSource) {
        self.action = action
        self.who = who
        self.from = from
    }
}
