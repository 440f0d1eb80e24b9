import FoundationEssentials
import Model

/// Saying anew what an endpoint is, out of everything that is seen of it.
extension EndpointBoard {
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
        if seen.isEmpty {
            goOffline(&endpoint, reason: "gone: no source sees it any more")
            entries[id]?.liveness = Liveness()
        } else {
            describe(&endpoint, by: seen)
            judge(&endpoint, seen: seen, liveness: entry.liveness)
        }
        endpoint.approval = ApprovalRule.approval(of: endpoint, approvals[id])
        return endpoint
    }

    private func goOffline(_ endpoint: inout Endpoint, reason: String) {
        endpoint.state = .offline
        endpoint.reason = reason
        endpoint.routes = []
        endpoint.sources = []
    }

    /// The network knows an app's name and TXT, the cable only that something answers: what says more goes first.
    private func describe(_ endpoint: inout Endpoint, by seen: [Sighting]) {
        let told = seen.first { $0.appIsBundleID } ?? seen.first { !$0.app.isEmpty }
        if let told {
            endpoint.kind = told.kind
            endpoint.app = told.app
            endpoint.name = told.name
        }
        endpoint.version = seen.lazy.compactMap(\.version).first ?? endpoint.version
        endpoint.boot = seen.lazy.compactMap(\.boot).first
        // The cable tells of no TXT record, so that what the network told last stays; the network may tell of an empty one.
        if let txt = (seen.first { !$0.txt.entries.isEmpty } ?? seen.first { $0.id.source == .bonjour })?.txt {
            endpoint.txt = txt
            endpoint.txtIsTruncated = txt.isTruncated ? true : nil
        }
        endpoint.place.udid = seen.lazy.compactMap(\.device).first ?? endpoint.place.udid
        endpoint.place.host = seen.lazy.compactMap(\.host).first ?? endpoint.place.host
        endpoint.routes = RoutePreference.sorted(seen.flatMap(\.routes))
        endpoint.sources = Set(seen.map(\.id.source)).sorted { $0.rawValue < $1.rawValue }
    }

    private func judge(_ endpoint: inout Endpoint, seen: [Sighting], liveness: Liveness) {
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
