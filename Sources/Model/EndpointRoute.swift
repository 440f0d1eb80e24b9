/// A route of an endpoint, with the facts that its source reports and the trust that it has.
///
/// Trust belongs to the route and not to the endpoint: an approved cable says nothing about a network address.
package struct EndpointRoute: Hashable, Sendable {
    package let route: Route
    /// The app that runs there, as the route's source reports it; empty when the source does not know.
    package let app: SanitizedText
    /// Whether `app` is a bundle identifier, and not only a name.
    package let appIsBundleID: Bool
    /// The launch of the app, as the route's source reports it.
    package let boot: SanitizedText?
    /// Whether the route may be dialled: the verdict of `ApprovalPolicy`.
    package var approval: Endpoint.Approval
    /// Whether a secret is held for this route and this launch.
    package var isSecretHeld = false
    /// The app that answered on this route instead of `app`; nil unless there was a contradiction.
    package var mismatch: SanitizedText?

    /// Without `approval` it is as without any consent: a cable or a configured address is approved, an advert is not.
    package init(
        _ route: Route,
        app: SanitizedText = SanitizedText(""),
        appIsBundleID: Bool = false,
        boot: SanitizedText? = nil,
        approval: Endpoint.Approval? = nil,
        mismatch: SanitizedText? = nil
    ) {
        self.route = route
        self.app = app
        self.appIsBundleID = appIsBundleID
        self.boot = boot
        self.approval = approval ?? (route.host == nil ? .approved : .discovered)
        self.mismatch = mismatch
    }

    package var port: UInt16 { route.port }
    package var isApproved: Bool { approval == .approved }

    /// The launch that a secret is bound to: the one that the source reports, else the port.
    package var launch: String { boot.map { "boot \($0)" } ?? Self.launch(atPort: port) }

    package static func launch(atPort port: UInt16) -> String { "port \(port)" }
}

extension EndpointRoute: CustomStringConvertible {
    package var description: String { route.description }
}

/// In JSON the members of the route, with `app`, `appIsBundleID`, `boot`, `approval`, `secretHeld` and `mismatch` beside them.
extension EndpointRoute: Codable {
    private enum Keys: String, CodingKey {
        case app, appIsBundleID, boot, approval, mismatch, isSecretHeld = "secretHeld"
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        route = try Route(from: decoder)
        app = try container.decodeIfPresent(SanitizedText.self, forKey: .app) ?? SanitizedText("")
        appIsBundleID = try container.decodeIfPresent(Bool.self, forKey: .appIsBundleID) ?? false
        boot = try container.decodeIfPresent(SanitizedText.self, forKey: .boot)
        approval = try container.decode(Endpoint.Approval.self, forKey: .approval)
        mismatch = try container.decodeIfPresent(SanitizedText.self, forKey: .mismatch)
        isSecretHeld = try container.decodeIfPresent(Bool.self, forKey: .isSecretHeld) ?? false
    }

    package func encode(to encoder: any Encoder) throws {
        try route.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        if !app.isEmpty { try container.encode(app, forKey: .app) }
        if appIsBundleID { try container.encode(true, forKey: .appIsBundleID) }
        try container.encodeIfPresent(boot, forKey: .boot)
        try container.encode(approval, forKey: .approval)
        try container.encodeIfPresent(mismatch, forKey: .mismatch)
        if isSecretHeld { try container.encode(true, forKey: .isSecretHeld) }
    }
}
