package import FoundationEssentials
package import Model

/// Which sightings are one endpoint: the rules of the registry without its clock, its feed or its callers.
///
/// Sightings gather into servers (`Server`), servers belong to endpoints. A server finds its endpoint by meeting the same
/// app on the other side of the cable, by a key it was known under before, or it becomes a new one.
package struct EndpointBoard: Sendable {
    /// What one event did to the list.
    package enum Outcome: Hashable, Sendable {
        case added(Endpoint)
        case changed(Endpoint)
        case removed(Endpoint)
    }

    struct Entry: Sendable {
        var record: EndpointRecord
        var servers: Set<Server> = []
        var liveness = Liveness()
    }

    /// Endpoints listed at most, and how many one LAN host may bring: a flood of adverts must not push others out.
    package static let limit = 1_024
    package static let limitPerHost = 64

    var entries: [EndpointID: Entry] = [:]
    var sightings: [Sighting.ID: Sighting] = [:]
    var stale: Set<Sighting.ID> = []
    var members: [Server: Set<Sighting.ID>] = [:]
    var owners: [Server: EndpointID] = [:]
    var meetings: [Server.Meeting: Set<Server>] = [:]
    var holders: [IdentityKey: Set<EndpointID>] = [:]
    /// Under which id an endpoint is listed now that was listed under another one before its app said its name.
    var successors: [EndpointID: EndpointID] = [:]
    var onHost: [String: Set<EndpointID>] = [:]
    /// What persons said yes to; kept elsewhere.
    var approvals: [EndpointID: Approval]
    /// How many sightings were not listed because of a limit.
    package private(set) var refused: UInt64 = 0

    package init(records: [EndpointRecord] = [], approvals: [Approval] = []) {
        self.approvals = Dictionary(approvals.map { ($0.endpoint, $0) }) { $1 }
        for record in records {
            var record = record
            record.endpoint.state = .offline
            record.endpoint.reason = "not seen since the broker started"
            record.endpoint.routes = []
            record.endpoint.sources = []
            record.endpoint.approval = ApprovalRule.approval(
                of: record.endpoint,
                self.approvals[record.endpoint.id]
            )
            insert(Entry(record: record))
        }
    }

    package var endpoints: [Endpoint] { entries.values.map(\.record.endpoint).sorted { $0.id < $1.id } }
    package var records: [EndpointRecord] { entries.values.map(\.record).sorted { $0.endpoint.id < $1.endpoint.id } }

    package subscript(_ id: EndpointID) -> Endpoint? {
        (entries[id] ?? successors[id].flatMap { entries[$0] })?.record.endpoint
    }

    package func endpoint(seenAs id: Sighting.ID) -> Endpoint? {
        sightings[id].flatMap { owners[Server(of: $0)] }.flatMap { self[$0] }
    }

    /// Takes in what a source says, and tells what that changed.
    package mutating func apply(_ event: SightingEvent, at now: Date) -> [Outcome] {
        switch event {
        case .seen(let sighting):
            return see(sighting, at: now)
        case .lost(let id):
            return refresh(remove(id).map { [$0] } ?? [])
        case .sourceLost(let source):
            let gone = sightings.keys.filter { $0.source == source }
            stale.formUnion(gone)
            return refresh(gone.compactMap { sightings[$0].flatMap { owners[Server(of: $0)] } })
        case .sourceReconciled(let source):
            return refresh(stale.filter { $0.source == source }.compactMap { remove($0) })
        }
    }

    /// Takes in what a probe found; nil is success.
    package mutating func report(_ failure: DialFailure?, of id: EndpointID, at now: Date) -> [Outcome] {
        guard var entry = entries[id], !entry.servers.isEmpty else { return [] }
        if let failure {
            entry.liveness.failed(failure)
        } else {
            entry.liveness.succeeded()
            entry.record.endpoint.lastSeen = now
        }
        entries[id] = entry
        return refresh([id])
    }

    /// Takes in a person's yes to an endpoint; nil is that there is none, or none any more.
    package mutating func approve(_ approval: Approval?, of id: EndpointID) -> [Outcome] {
        approvals[id] = approval
        guard let before = entries[id]?.record.endpoint else { return [] }
        var after = before
        // It is nowhere: where it comes back says whether it needs a yes.
        if approval == nil, before.routes.isEmpty { after.approval = .discovered }
        after.approval = ApprovalRule.approval(of: after, approval)
        guard after != before else { return [] }
        entries[id]?.record.endpoint = after
        return [.changed(after)]
    }

    /// Forgets an endpoint that no source sees.
    package mutating func forget(_ id: EndpointID) throws(RegistryError) -> Outcome {
        guard let entry = entries[id] else { throw .noSuchEndpoint(id.text) }
        guard entry.servers.isEmpty else { throw .stillSeen(id) }
        erase(id)
        return .removed(entry.record.endpoint)
    }

    private mutating func see(_ sighting: Sighting, at now: Date) -> [Outcome] {
        let server = Server(of: sighting)
        let isNews = sightings[sighting.id] != sighting
        var touched: [EndpointID] = []
        var former: EndpointID?
        if let old = sightings[sighting.id], Server(of: old) != server, let owner = remove(sighting.id) {
            // The app moved (another port, another host): its old place is free before the new one looks for its endpoint.
            touched.append(owner)
            former = owner
        }
        sightings[sighting.id] = sighting
        stale.remove(sighting.id)
        members[server, default: []].insert(sighting.id)
        if let meeting = server.meeting { meetings[meeting, default: []].insert(server) }

        let absorbed = lesserEndpoints(than: sighting, on: server)
        var outcomes = absorbed.compactMap { entries[$0].map { Outcome.removed($0.record.endpoint) } }
        for id in absorbed { erase(id) }
        if owners[server] == nil {
            guard let home = home(for: server, of: sighting, from: former, at: now) else {
                refused += 1
                _ = remove(sighting.id)
                return outcomes + refresh(touched)
            }
            outcomes += home.evicted.map(Outcome.removed)
            own(server, by: home.id)
            if home.isNew { outcomes += add(home.id) }
        }
        if let id = owners[server] {
            // A line of the configuration is no proof that anything is there.
            if sighting.id.source != .config { entries[id]?.record.endpoint.lastSeen = now }
            // A source that says something new about it is proof as good as a probe's; repeating itself is none.
            if isNews { entries[id]?.liveness.succeeded() }
            remember(sighting, for: id)
            succeed(absorbed, by: id)
            touched.append(id)
        }
        return outcomes + refresh(touched)
    }

    /// Takes a sighting off the board; returns the endpoint whose sighting it was.
    private mutating func remove(_ id: Sighting.ID) -> EndpointID? {
        guard let sighting = sightings.removeValue(forKey: id) else { return nil }
        stale.remove(id)
        let server = Server(of: sighting)
        let owner = owners[server]
        members[server]?.remove(id)
        if members[server]?.isEmpty == true {
            members[server] = nil
            owners[server] = nil
            if let owner { entries[owner]?.servers.remove(server) }
            if let meeting = server.meeting {
                meetings[meeting]?.remove(server)
                if meetings[meeting]?.isEmpty == true { meetings[meeting] = nil }
            }
        }
        return owner
    }
}
