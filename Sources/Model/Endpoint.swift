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
        case denied

        /// True if an owner approved the app once, though another app or address may be there now.
        package var wasApproved: Bool { self == .approved || self == .changed }
    }

    /// The phone or machine on which the app runs.
    package struct Location: Hashable, Sendable, Codable {
        package var udid: UDID?
        /// The name that the phone itself reports over the cable.
        package var deviceName: SanitizedText?
        /// The machine as the source knows it: an SRV target, or the address of an app that connected.
        package var machine: SanitizedText?

        /// The key `host` is older than the word machine, which leaves the word host to teams.
        private enum CodingKeys: String, CodingKey {
            case udid, deviceName
            case machine = "host"
        }

        package init(udid: UDID? = nil, deviceName: SanitizedText? = nil, machine: SanitizedText? = nil) {
            self.udid = udid
            self.deviceName = deviceName
            self.machine = machine
        }
    }

    package internal(set) var id: EndpointID
    package var kind: EndpointKind
    package var app: SanitizedText
    package var name: SanitizedText
    package var version: SanitizedText?
    package var location: Location
    package var state: State
    /// The reason for the state suspect, offline or blocked, as a sentence.
    package var reason: String?
    package var approval: Approval
    /// The routes, best first. Empty while the endpoint is offline or blocked. An offline app of the state debugger keeps
    /// its route while its states are held.
    package var routes: [EndpointRoute]
    package var txt: TXTRecord
    /// True if the received TXT record exceeded a limit and `txt` is incomplete. Nil otherwise.
    package var txtTruncated: Bool?
    /// The sources that currently report the endpoint.
    package var sources: [Sighting.Source]
    /// True if the app registered itself with a grant and so chose its own names. Stays true while the app is away. Nil
    /// otherwise.
    package var registered: Bool?
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
    /// The endpoint on a cable that leads to the same launch of the app. Nil if there is none.
    ///
    /// Each endpoint keeps its own approval, secret, tunnels and grants. Only lists combine both (`combined`).
    package var sameLaunchAs: EndpointID?
    /// The endpoints that a list shows as part of this one. Nil outside of such lists, and if there are none.
    package var combinedWith: [Endpoint]?
    /// `EndpointAbilities.capabilities`. Nil until the registry has described the endpoint.
    package var capabilities: [String]?
    /// `EndpointAbilities.limits`.
    package var limits: [String]?
    /// The repairs in the messages of the server. Nil if there are none, in the registry, and for an endpoint of another
    /// host.
    package var deviations: [ServerDeviation]?
    /// The host whose broker reaches the endpoint. Nil without a team, and in the registry for an endpoint of this
    /// broker.
    package var host: HostStatus?
    /// The routes of the other host's broker, which this broker cannot dial. Nil for an endpoint of this broker.
    package var hostRoutes: [EndpointRoute]?
    /// The lease of the endpoint or of its phone. Nil if there is none, and in the registry.
    package var lease: Lease?
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
    /// The reason of a configured endpoint to which no connection was tried.
    package static let notTriedYet = "not tried yet"

    /// The app as an approved route reports it. Nil if no route is approved. Grants for an app use only this value.
    package var approvedApp: SanitizedText? { approval == .approved ? app : nil }

    /// Returns whether the text is the ID of the endpoint, or a former ID. The ID of an endpoint of this broker may name
    /// this host.
    package func isCalled(_ text: String) -> Bool {
        if let host, !isOnOtherHost, text == id.on(host.name).text { return true }
        return id.text == text || formerIDs?.contains { $0.text == text } ?? false
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
