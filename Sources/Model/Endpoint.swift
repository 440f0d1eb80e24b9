package import FoundationEssentials

/// One debuggable app instance.
///
/// The ID survives a relaunch, a new port, a replug and a restart of the broker. All other properties can change.
package struct Endpoint: Hashable, Sendable, Codable, Identifiable {
    package enum State: String, Hashable, Sendable, Codable {
        /// A recent probe or source confirmed that the endpoint is reachable.
        case online
        /// The last probe failed, or the last confirmation is too old.
        case suspect
        /// The endpoint is gone. Its entry and ID are kept for its return.
        case offline
        /// The endpoint is listed but never dialled. `reason` has the cause.
        case blocked
    }

    /// The approval state of a route, or the best approval state of an endpoint's routes. `ApprovalPolicy` computes it.
    package enum Approval: String, Hashable, Sendable, Codable {
        case pending
        case approved
        case changed
    }

    /// The phone or host on which the app runs.
    package struct Location: Hashable, Sendable, Codable {
        package var udid: UDID?
        /// The name that the phone itself reports over the cable.
        package var deviceName: SanitizedText?
        package var host: SanitizedText?

        package init(udid: UDID? = nil, deviceName: SanitizedText? = nil, host: SanitizedText? = nil) {
            self.udid = udid
            self.deviceName = deviceName
            self.host = host
        }
    }

    package let id: EndpointID
    package var kind: EndpointKind
    package var app: SanitizedText
    package var name: SanitizedText
    package var version: SanitizedText?
    package var location: Location
    package var state: State
    /// The reason for the state suspect, offline or blocked, as a sentence.
    package var reason: String?
    package var approval: Approval
    /// The routes, best first. Empty while the endpoint is offline or blocked.
    package var routes: [EndpointRoute]
    package var txt: TXTRecord
    /// True if the received TXT record exceeded a limit and `txt` is incomplete. Nil otherwise.
    package var txtTruncated: Bool?
    /// The sources that currently report the endpoint.
    package var sources: [Sighting.Source]
    package var launchID: SanitizedText?
    /// The name that the server reported over an approved route: a bundle identifier for AppReveal, else
    /// `serverInfo.name`.
    ///
    /// Another name on the same route is a mismatch until an owner approves the endpoint again.
    package var server: SanitizedText?
    /// The IDs of endpoints that turned out to be this one. Commands and URLs accept them. Nil if there are none.
    package var formerIDs: [EndpointID]?
    /// Other endpoints that may be the same app on another route. Nil if there are none.
    ///
    /// This is a hint for people. Approvals, routes, secrets and grants never use it, because a network source can
    /// cause it.
    package var possiblySameAs: [EndpointID]?
    /// `EndpointAbilities.capabilities`. Nil until the registry has described the endpoint.
    package var capabilities: [String]?
    /// `EndpointAbilities.limits`.
    package var limits: [String]?
    /// The time when this endpoint was first listed.
    package var firstSeenAt: Date
    /// The time when a source last reported the endpoint or a probe last reached it. Nil for a configured endpoint that
    /// was never reached.
    package var lastSeenAt: Date?

    package init(
        id: EndpointID,
        kind: EndpointKind,
        app: SanitizedText,
        name: SanitizedText,
        version: SanitizedText? = nil,
        location: Location = Location(),
        state: State,
        reason: String? = nil,
        approval: Approval,
        routes: [EndpointRoute] = [],
        txt: TXTRecord = TXTRecord(),
        sources: [Sighting.Source] = [],
        launchID: SanitizedText? = nil,
        firstSeenAt: Date,
        lastSeenAt: Date?
    ) {
        self.id = id
        self.kind = kind
        self.app = app
        self.name = name
        self.version = version
        self.location = location
        self.state = state
        self.reason = reason
        self.approval = approval
        self.routes = routes
        self.txt = txt
        txtTruncated = txt.isTruncated ? true : nil
        self.sources = sources
        self.launchID = launchID
        self.firstSeenAt = firstSeenAt
        self.lastSeenAt = lastSeenAt
    }
}

extension Endpoint {
    /// The app as an approved route reports it. Nil if no route is approved. Grants for an app use only this value.
    package var approvedApp: SanitizedText? { approval == .approved ? app : nil }

    /// Returns whether the text is the ID of the endpoint, or a former ID.
    package func isCalled(_ text: String) -> Bool {
        id.text == text || formerIDs?.contains { $0.text == text } ?? false
    }

    /// The routes marked as approved. A dial evaluates `ApprovalPolicy` again.
    package var approvedRoutes: [EndpointRoute] { routes.filter(\.isApproved) }
}

/// One numbered change of the list. A subscriber that has revision N needs exactly the changes after N.
package struct EndpointChange: Hashable, Sendable, Codable {
    package enum Kind: String, Hashable, Sendable, Codable {
        case added
        case changed
        /// An owner removed the endpoint. An app that quits is `changed` to offline instead.
        case removed
    }

    package let revision: UInt64
    package let kind: Kind
    package let endpoint: Endpoint

    package init(revision: UInt64, kind: Kind, endpoint: Endpoint) {
        self.revision = revision
        self.kind = kind
        self.endpoint = endpoint
    }
}

/// Name matching for selectors, ignoring case.
extension Endpoint {
    /// Returns whether the text is the name of the endpoint or of its app.
    package func isNamed(_ text: String) -> Bool {
        let wanted = text.lowercased()
        return name.text.lowercased() == wanted || app.text.lowercased() == wanted
    }

    /// Returns whether the text matches `isNamed` or the last component of the bundle identifier: `shop` for
    /// `com.example.shop`.
    package func isApp(_ text: String) -> Bool {
        isNamed(text) || app.text.lowercased().split(separator: ".").last.map(String.init) == text.lowercased()
    }
}

/// The protocol that an endpoint speaks.
///
/// Any service name is a valid kind, because the configuration can add service types. The kinds that Patchbay supports
/// have constants.
package struct EndpointKind: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    /// AppReveal's MCP server inside an app: JSON-RPC over POST, and `GET /health` without a token.
    package static let appreveal = EndpointKind("appreveal")
    /// An app-debug server: plain HTTP on a phone's loopback, with `GET /actions`.
    package static let appDebug = EndpointKind("app-debug")
    /// A state debugger of type `_debug._tcp`. The debugger advertises and the app connects to it.
    package static let debug = EndpointKind("debug")
    /// Any other MCP server.
    package static let mcp = EndpointKind("mcp")
    package static let openagents = EndpointKind("openagents")
    /// The Dart VM service of a Flutter app.
    package static let dartVM = EndpointKind("dart-vm")
    /// A TCP port with an unknown protocol.
    package static let tcp = EndpointKind("tcp")

    package init(_ text: String) { self.text = text }

    /// Creates the kind of a service type: `_appreveal._tcp` becomes `appreveal`. Types without a constant keep their
    /// service name.
    package init(serviceType: ServiceType) {
        switch serviceType {
        case .dartVMService, .flutterDevices: self = .dartVM
        default: self.init(String(serviceType.text.dropFirst().prefix { $0 != "." }))
        }
    }

    package var description: String { text }

    package static func < (one: EndpointKind, other: EndpointKind) -> Bool { one.text < other.text }
}

extension EndpointKind: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(SanitizedText(try decoder.singleValueContainer().decode(String.self)).text)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
