package import FoundationEssentials

/// One debuggable app instance as a user thinks of it.
///
/// Its id survives relaunch, another port, a replug and a restart of the broker; everything else about it may change.
package struct Endpoint: Hashable, Sendable, Codable, Identifiable {
    package enum State: String, Hashable, Sendable, Codable {
        /// Something proved lately that it is there.
        case online
        /// It was there; the last proof failed or is stale.
        case suspect
        /// It is gone, and kept so that its address goes on working when it comes back.
        case offline
        /// It is listed and never dialled; `reason` says why.
        case blocked
    }

    /// Whether a route may be dialled; of an endpoint, whether any of its routes may. `ApprovalPolicy` decides it.
    package enum Approval: String, Hashable, Sendable, Codable {
        case discovered
        case approved
        case changed
    }

    /// A phone, as much of it as an endpoint's reader needs.
    package struct Place: Hashable, Sendable, Codable {
        package var udid: UDID?
        package var host: SanitizedText?

        package init(udid: UDID? = nil, host: SanitizedText? = nil) {
            self.udid = udid
            self.host = host
        }
    }

    package let id: EndpointID
    package var kind: EndpointKind
    package var app: SanitizedText
    package var name: SanitizedText
    package var version: SanitizedText?
    package var place: Place
    package var state: State
    /// Why it is suspect, offline or blocked, as a sentence.
    package var reason: String?
    package var approval: Approval
    /// Best first. Empty while it is offline or blocked.
    package var routes: [EndpointRoute]
    package var txt: TXTRecord
    /// True when more was received than `txt` keeps; absent otherwise.
    package var txtIsTruncated: Bool?
    /// Which sources see it now.
    package var sources: [Sighting.Source]
    package var boot: SanitizedText?
    /// The name that the server gave itself over an approved route: a bundle identifier for AppReveal, else the name in
    /// `serverInfo`. Another name on the same route is a contradiction until an owner approves the endpoint again.
    package var server: SanitizedText?
    /// When this endpoint was first listed.
    package var since: Date
    /// When a source last saw it, or a probe last reached it; nil for one that was written down and never reached.
    package var lastSeen: Date?

    package init(
        id: EndpointID,
        kind: EndpointKind,
        app: SanitizedText,
        name: SanitizedText,
        version: SanitizedText? = nil,
        place: Place = Place(),
        state: State,
        reason: String? = nil,
        approval: Approval,
        routes: [EndpointRoute] = [],
        txt: TXTRecord = TXTRecord(),
        sources: [Sighting.Source] = [],
        boot: SanitizedText? = nil,
        since: Date,
        lastSeen: Date?
    ) {
        self.id = id
        self.kind = kind
        self.app = app
        self.name = name
        self.version = version
        self.place = place
        self.state = state
        self.reason = reason
        self.approval = approval
        self.routes = routes
        self.txt = txt
        txtIsTruncated = txt.isTruncated ? true : nil
        self.sources = sources
        self.boot = boot
        self.since = since
        self.lastSeen = lastSeen
    }
}

extension Endpoint {
    /// The app as an approved route reports it; nil when no route is approved. Grants for an app look at nothing else.
    package var approvedApp: SanitizedText? { approval == .approved ? app : nil }

    /// The routes that may be dialled, as the list shows them. A dial asks `ApprovalPolicy` again.
    package var approvedRoutes: [EndpointRoute] { routes.filter(\.isApproved) }
}

/// One step of the list, numbered. A follower that has seen revision N needs exactly the changes after N.
package struct EndpointChange: Hashable, Sendable, Codable {
    package enum Kind: String, Hashable, Sendable, Codable {
        case added
        case changed
        /// Forgotten: a person deleted it. An app that merely went away is `changed` to offline.
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

/// Which app an endpoint is of, as people say it: in any case.
extension Endpoint {
    /// Whether this is its name, or its app's.
    package func isNamed(_ text: String) -> Bool {
        let wanted = text.lowercased()
        return name.text.lowercased() == wanted || app.text.lowercased() == wanted
    }

    /// The same, or the last part of its bundle identifier: `shop` for `com.example.shop`.
    package func isApp(_ text: String) -> Bool {
        isNamed(text) || app.text.lowercased().split(separator: ".").last.map(String.init) == text.lowercased()
    }
}

/// What an endpoint speaks.
///
/// A closed set would lose services whose type somebody configured, so any service name is a kind; the ones that Patchbay
/// knows how to talk to have names of their own here.
package struct EndpointKind: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    /// AppReveal's MCP server inside an app: JSON-RPC by POST, `GET /health` open.
    package static let appreveal = EndpointKind("appreveal")
    /// An app-debug server: plain HTTP on a phone's loopback, `GET /actions`.
    package static let appDebug = EndpointKind("app-debug")
    /// A state debugger of the `_debug._tcp` kind; the debugger advertises, the app connects.
    package static let debug = EndpointKind("debug")
    /// Any other MCP server.
    package static let mcp = EndpointKind("mcp")
    package static let openagents = EndpointKind("openagents")
    /// The Dart VM service of a Flutter app.
    package static let dartVM = EndpointKind("dart-vm")
    /// Something answers TCP, and nothing more is known.
    package static let tcp = EndpointKind("tcp")

    package init(_ text: String) { self.text = text }

    /// `_appreveal._tcp` is `appreveal`; a type without a name of its own here keeps its service name.
    package init(serviceType: ServiceType) {
        switch serviceType {
        case .dartVMService: self = .dartVM
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
