import FoundationEssentials
import Model

/// Recomputes an endpoint from all of its sightings.
extension EndpointTable {
    /// Updates endpoints and returns those that changed.
    mutating func refresh(_ ids: some Sequence<EndpointID>) -> [Change] {
        Set(ids).sorted().compactMap { id in
            guard let before = entries[id]?.record.endpoint, let after = describe(id) else { return nil }
            entries[id]?.record.endpoint = after
            var comparable = before
            comparable.lastSeenAt = after.lastSeenAt
            return comparable == after ? nil : .changed(after)
        }
    }

    /// Fills in a new endpoint from its sightings.
    mutating func add(_ id: EndpointID) -> [Change] {
        guard let endpoint = describe(id) else { return [] }
        entries[id]?.record.endpoint = endpoint
        return [.added(endpoint)]
    }

    private mutating func describe(_ id: EndpointID) -> Endpoint? {
        guard let entry = entries[id] else { return nil }
        var endpoint = entry.record.endpoint
        let seen = entry.servers.flatMap { sightingsByServer[$0] ?? [] }.compactMap { sightings[$0] }
            .sorted { $0.id.description < $1.id.description }
        let trust = trusts[id] ?? .none
        if seen.isEmpty {
            goOffline(&endpoint, reason: "no discovery source reports it any more")
            entries[id]?.liveness = Liveness()
        } else {
            endpoint.routes = routes(of: seen, trust)
            endpoint.sources = Set(seen.map(\.id.source)).sorted { $0.rawValue < $1.rawValue }
            // Once a route is approved, sightings on other routes no longer describe the endpoint.
            let approved = Set(endpoint.approvedRoutes.map(\.route))
            let trusted = seen.filter { !approved.isDisjoint(with: $0.routes) }
            describe(&endpoint, by: trusted.isEmpty ? seen : trusted)
            evaluateState(of: &endpoint, seen: seen, liveness: entry.liveness)
        }
        endpoint.approval = ApprovalPolicy.approval(of: endpoint, trust.approval)
        return endpoint
    }

    private func goOffline(_ endpoint: inout Endpoint, reason: String) {
        endpoint.state = .offline
        endpoint.reason = reason
        endpoint.routes = []
        endpoint.sources = []
    }

    private func routes(of seen: [Sighting], _ trust: EndpointTrust) -> [EndpointRoute] {
        var routes: [Route: EndpointRoute] = [:]
        for sighting in seen {
            for route in sighting.routes where routes[route] == nil {
                var listed = EndpointRoute(
                    route,
                    app: sighting.app,
                    appIsBundleID: sighting.appIsBundleID,
                    launchID: sighting.launchID,
                    mismatch: mismatches[route]
                )
                listed.approval = ApprovalPolicy.decision(on: listed, trust.approval).approval
                listed.isSecretHeld = ApprovalPolicy.maySendSecret(over: listed, trust)
                routes[route] = listed
            }
        }
        return RoutePreference.sorted(routes.values)
    }

    private func describe(_ endpoint: inout Endpoint, by seen: [Sighting]) {
        let identified = seen.first { $0.appIsBundleID } ?? seen.first { !$0.app.isEmpty }
        if let identified {
            endpoint.kind = identified.kind
            endpoint.app = identified.app
            endpoint.name = identified.name
        }
        // USB reports no app. The name that the app itself reported stays until the app reports another one.
        if identified == nil, endpoint.kind == .appreveal, let server = endpoint.server { endpoint.app = server }
        endpoint.version = seen.lazy.compactMap(\.version).first ?? endpoint.version
        endpoint.launchID = seen.lazy.compactMap(\.launchID).first
        // USB reports no TXT record, so the last one from the network stays. The network may report an empty record.
        if let txt = (seen.first { !$0.txt.entries.isEmpty } ?? seen.first { $0.id.source == .bonjour })?.txt {
            endpoint.txt = txt
            endpoint.txtTruncated = txt.isTruncated ? true : nil
        }
        endpoint.location.udid = seen.lazy.compactMap(\.device).first ?? endpoint.location.udid
        endpoint.location.host = seen.lazy.compactMap(\.host).first ?? endpoint.location.host
    }

    private func evaluateState(of endpoint: inout Endpoint, seen: [Sighting], liveness: Liveness) {
        if endpoint.routes.isEmpty, let reason = seen.lazy.compactMap(\.blocked).first {
            endpoint.state = .blocked
            endpoint.reason = reason
            return
        }
        if endpoint.routes.isEmpty {
            endpoint.state = .suspect
            endpoint.reason = "its address is not known yet"
            return
        }
        endpoint.state = liveness.state
        endpoint.reason = liveness.lastFailure?.description
        if endpoint.state == .online, seen.allSatisfy({ stale.contains($0.id) }) {
            endpoint.state = .suspect
            endpoint.reason = "its discovery source is unavailable; the last known state is shown"
        }
    }
}

/// The liveness of one endpoint according to probes, independent of its sources.
///
/// Avahi reports a peer that vanished without a goodbye after 125 s at the earliest. Probes detect it sooner: one
/// failure makes an endpoint suspect, `failuresToOffline` consecutive ones make it offline.
struct Liveness: Hashable, Sendable {
    /// Three failures take at most 15 s: 4 s between them, and 3 s each to detect a dead host (EHOSTUNREACH by ARP).
    static let failuresToOffline = 3

    private(set) var failures = 0
    private(set) var lastFailure: DialError?

    mutating func succeeded() {
        failures = 0
        lastFailure = nil
    }

    mutating func failed(_ failure: DialError) {
        failures += 1
        lastFailure = failure
    }

    /// The state of an endpoint that at least one source reports.
    var state: Endpoint.State {
        switch failures {
        case 0: .online
        case ..<Self.failuresToOffline: .suspect
        default: .offline
        }
    }
}

/// The order in which routes are tried: approved ones first, then USB, then network routes by likelihood of success.
enum RoutePreference {
    static func sorted(_ routes: some Sequence<EndpointRoute>) -> [EndpointRoute] {
        routes.sorted { one, other in
            guard one.isApproved == other.isApproved else { return one.isApproved }
            let (first, second) = (rank(one.route), rank(other.route))
            return first == second ? one.description < other.description : first < second
        }
    }

    private static func rank(_ route: Route) -> Int {
        guard case .network(let network) = route else { return 0 }
        let address = network.address.lowercased()
        return switch true {
        case !address.contains(":"): address.hasPrefix("169.254.") ? 3 : 1
        case address.hasPrefix("fe80"): 4
        default: 2
        }
    }
}
