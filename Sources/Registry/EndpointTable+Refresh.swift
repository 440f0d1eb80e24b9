import FoundationEssentials
import Model

/// Saying anew what an endpoint is, out of everything that is seen of it.
extension EndpointTable {
    /// Brings endpoints up to date; tells of those that became different.
    mutating func refresh(_ ids: some Sequence<EndpointID>) -> [Outcome] {
        Set(ids).sorted().compactMap { id in
            guard let before = entries[id]?.record.endpoint, let after = describe(id) else { return nil }
            entries[id]?.record.endpoint = after
            var comparable = before
            comparable.lastSeen = after.lastSeen
            return comparable == after ? nil : .changed(after)
        }
    }

    /// Says what a new endpoint is.
    mutating func add(_ id: EndpointID) -> [Outcome] {
        guard let endpoint = describe(id) else { return [] }
        entries[id]?.record.endpoint = endpoint
        return [.added(endpoint)]
    }

    private mutating func describe(_ id: EndpointID) -> Endpoint? {
        guard let entry = entries[id] else { return nil }
        var endpoint = entry.record.endpoint
        let seen = entry.servers.flatMap { members[$0] ?? [] }.compactMap { sightings[$0] }
            .sorted { $0.id.description < $1.id.description }
        let trust = trusts[id] ?? .none
        if seen.isEmpty {
            goOffline(&endpoint, reason: "gone: no source sees it any more")
            entries[id]?.liveness = Liveness()
        } else {
            endpoint.routes = routes(of: seen, trust)
            endpoint.sources = Set(seen.map(\.id.source)).sorted { $0.rawValue < $1.rawValue }
            // As soon as one route is approved, the sources of the others describe nothing.
            let approved = Set(endpoint.approvedRoutes.map(\.route))
            let trusted = seen.filter { !approved.isDisjoint(with: $0.routes) }
            describe(&endpoint, by: trusted.isEmpty ? seen : trusted)
            judge(&endpoint, seen: seen, liveness: entry.liveness)
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
                    boot: sighting.boot,
                    mismatch: mismatches[route]
                )
                listed.approval = ApprovalPolicy.verdict(on: listed, trust.approval).approval
                listed.isSecretHeld = ApprovalPolicy.maySendSecret(over: listed, trust)
                routes[route] = listed
            }
        }
        return RoutePreference.sorted(routes.values)
    }

    private func describe(_ endpoint: inout Endpoint, by seen: [Sighting]) {
        let told = seen.first { $0.appIsBundleID } ?? seen.first { !$0.app.isEmpty }
        if let told {
            endpoint.kind = told.kind
            endpoint.app = told.app
            endpoint.name = told.name
        }
        // A cable tells no app; what the app itself told over it stands until the app contradicts it.
        if told == nil, endpoint.kind == .appreveal, let server = endpoint.server { endpoint.app = server }
        endpoint.version = seen.lazy.compactMap(\.version).first ?? endpoint.version
        endpoint.boot = seen.lazy.compactMap(\.boot).first
        // The cable tells of no TXT record, so that what the network told last stays; the network may tell of an empty one.
        if let txt = (seen.first { !$0.txt.entries.isEmpty } ?? seen.first { $0.id.source == .bonjour })?.txt {
            endpoint.txt = txt
            endpoint.txtIsTruncated = txt.isTruncated ? true : nil
        }
        endpoint.place.udid = seen.lazy.compactMap(\.device).first ?? endpoint.place.udid
        endpoint.place.host = seen.lazy.compactMap(\.host).first ?? endpoint.place.host
    }

    private func judge(_ endpoint: inout Endpoint, seen: [Sighting], liveness: Liveness) {
        if endpoint.routes.isEmpty, let reason = seen.lazy.compactMap(\.blocked).first {
            endpoint.state = .blocked
            endpoint.reason = reason
            return
        }
        if endpoint.routes.isEmpty {
            endpoint.state = .suspect
            endpoint.reason = "seen, but no address of it is known yet"
            return
        }
        endpoint.state = liveness.state
        endpoint.reason = liveness.lastFailure?.description
        if endpoint.state == .online, seen.allSatisfy({ stale.contains($0.id) }) {
            endpoint.state = .suspect
            endpoint.reason = "its source is away; this is how it was last seen"
        }
    }
}

/// What the probes say about one endpoint, apart from what its sources say.
///
/// Avahi tells of a peer that vanished without a goodbye after 125 s at best, so proof comes from our own probes: one that
/// fails makes an endpoint suspect, `failuresToOffline` in a row make it offline.
struct Liveness: Hashable, Sendable {
    /// Three failures 4 s apart are at most 15 s, with a dead host's 3 s (EHOSTUNREACH by ARP) each counted in.
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

    /// The state of an endpoint that some source sees.
    var state: Endpoint.State {
        switch failures {
        case 0: .online
        case ..<Self.failuresToOffline: .suspect
        default: .offline
        }
    }
}

/// Which of several routes is tried first: approved ones, then the cable, then the network from the most to the least
/// likely to work.
enum RoutePreference {
    static func sorted(_ routes: some Sequence<EndpointRoute>) -> [EndpointRoute] {
        routes.sorted { one, other in
            guard one.isApproved == other.isApproved else { return one.isApproved }
            let (first, second) = (rank(one.route), rank(other.route))
            return first == second ? one.description < other.description : first < second
        }
    }

    private static func rank(_ route: Route) -> Int {
        guard case .lan(let lan) = route else { return 0 }
        let address = lan.address.lowercased()
        return switch true {
        case !address.contains(":"): address.hasPrefix("169.254.") ? 3 : 1
        case address.hasPrefix("fe80"): 4
        default: 2
        }
    }
}
