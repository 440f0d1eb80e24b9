package import FoundationEssentials
package import Model

/// Which sightings are one endpoint: the rules of the registry without its clock, its feed or its callers.
///
/// Sightings gather into servers (`ServerKey`), servers belong to endpoints. A server finds its endpoint by a key it was known
/// under before, or it becomes a new one. A server on the network is shown with a cabled endpoint when both report the same
/// launch. Trust belongs to each route in any case.
package struct EndpointTable: Sendable {
    /// What one event did to the list.
    package enum Outcome: Hashable, Sendable {
        case added(Endpoint)
        case changed(Endpoint)
        case removed(Endpoint)
    }

    struct Entry: Sendable {
        var record: PersistedEndpoint
        var servers: Set<ServerKey> = []
        /// The network addresses that adverts gave for it.
        var addresses: Set<String> = []
        /// The launch that the cable reports now.
        var launch: SanitizedText?
        var liveness = Liveness()
    }

    /// Endpoints listed at most.
    package static let limit = 4_096
    /// Places that unapproved adverts leave free.
    package static let reserve = 1_024
    /// Endpoints that adverts for one network address may bring.
    package static let limitPerAddress = 64

    var entries: [EndpointID: Entry] = [:]
    var sightings: [Sighting.ID: Sighting] = [:]
    var stale: Set<Sighting.ID> = []
    var members: [ServerKey: Set<Sighting.ID>] = [:]
    var owners: [ServerKey: EndpointID] = [:]
    var meetings: [ServerKey.Meeting: Set<ServerKey>] = [:]
    var holders: [IdentityKey: Set<EndpointID>] = [:]
    /// Under which id an endpoint is listed now that was listed under another one before its app said its name.
    var successors: [EndpointID: EndpointID] = [:]
    /// The endpoints that came from adverts, and those that no source sees.
    var adverts: Set<EndpointID> = []
    var unseen: Set<EndpointID> = []
    /// The endpoints that came from adverts, by network address.
    var onAddress: [String: Set<EndpointID>] = [:]
    /// Approvals and secrets as access control holds them.
    var trusts: [EndpointID: EndpointTrust]
    /// The app that answered on a route instead of the announced one.
    var mismatches: [Route: SanitizedText] = [:]
    package internal(set) var retired: RetiredIDs
    package private(set) var refusals = Refusals()

    package init(
        records: [PersistedEndpoint] = [],
        trusts: [EndpointID: EndpointTrust] = [:],
        retired: RetiredIDs = RetiredIDs()
    ) {
        self.trusts = trusts
        self.retired = retired
        for record in records {
            var record = record
            record.endpoint.state = .offline
            record.endpoint.reason = "not seen since the broker started"
            record.endpoint.routes = []
            record.endpoint.sources = []
            record.endpoint.approval = ApprovalPolicy.approval(
                of: record.endpoint,
                trusts[record.endpoint.id]?.approval
            )
            insert(Entry(record: record))
        }
    }

    package var endpoints: [Endpoint] { entries.values.map(\.record.endpoint).sorted { $0.id < $1.id } }
    package var records: [PersistedEndpoint] { entries.values.map(\.record).sorted { $0.endpoint.id < $1.endpoint.id } }

    package subscript(_ id: EndpointID) -> Endpoint? {
        (entries[id] ?? successors[id].flatMap { entries[$0] })?.record.endpoint
    }

    package func endpoint(seenAs id: Sighting.ID) -> Endpoint? {
        sightings[id].flatMap { owners[ServerKey(of: $0)] }.flatMap { self[$0] }
    }

    /// Takes in what a source says, and tells what that changed.
    package mutating func apply(_ event: SightingEvent, at now: Date) -> [Outcome] {
        switch event {
        case .seen(let sighting):
            return see(sighting, at: now)
        case .lost(let id):
            refusals.remove(id)
            for route in sightings[id]?.routes ?? [] { mismatches[route] = nil }
            return lose([id], at: now)
        case .sourceLost(let source):
            refusals.remove(of: source)
            let gone = sightings.keys.filter { $0.source == source }
            stale.formUnion(gone)
            return refresh(gone.compactMap { sightings[$0].flatMap { owners[ServerKey(of: $0)] } })
        case .sourceReconciled(let source):
            return lose(stale.filter { $0.source == source }, at: now)
        }
    }

    private mutating func lose(_ ids: some Sequence<Sighting.ID>, at now: Date) -> [Outcome] {
        let touched = Set(ids.compactMap { remove($0) })
        return touched.sorted().flatMap { separate(from: $0, at: now) } + refresh(touched)
    }

    /// Takes in what a probe found; nil is success.
    package mutating func report(_ failure: DialError?, of id: EndpointID, at now: Date) -> [Outcome] {
        guard var entry = entries[id], !entry.servers.isEmpty else { return [] }
        if let failure {
            entry.liveness.failed(failure)
            // Nothing listens there any more: the next server that does is asked anew.
            if failure.reason == .refused {
                for route in entry.record.endpoint.routes { mismatches[route.route] = nil }
            }
        } else {
            // Nearly every probe finds what is known already.
            let isNews = entry.liveness.state != .online
            entry.liveness.succeeded()
            entry.record.endpoint.lastSeen = now
            if !isNews {
                entries[id] = entry
                return []
            }
        }
        entries[id] = entry
        return refresh([id])
    }

    /// Takes in what access control holds for an endpoint now.
    package mutating func setTrust(_ trust: EndpointTrust, of id: EndpointID, at now: Date) -> [Outcome] {
        trusts[id] = trust == .none ? nil : trust
        guard let entry = entries[id] else { return [] }
        // An approval may be the only reason why an advert is shown with a cable.
        let outcomes = separate(from: id, at: now)
        if entry.servers.isEmpty, entry.record.source == .bonjour, trust.approval == nil {
            // Where it comes back says whether it needs an approval.
            entries[id]?.record.endpoint.approval = .discovered
            var after = entry.record.endpoint
            after.approval = .discovered
            return after == entry.record.endpoint ? outcomes : outcomes + [.changed(after)]
        }
        return outcomes + refresh([id])
    }

    /// Takes in that another app answered on an approved route than the one that was expected there.
    package mutating func setMismatch(_ app: SanitizedText, on route: Route, of id: EndpointID) -> [Outcome] {
        mismatches[route] = app
        return refresh([id])
    }

    /// Takes in the name that the server of an endpoint gave itself over an approved route.
    package mutating func setServer(_ name: SanitizedText, version: SanitizedText?, of id: EndpointID) -> [Outcome] {
        guard let before = entries[id]?.record.endpoint, before.server != name else { return [] }
        entries[id]?.record.endpoint.server = name
        if let version { entries[id]?.record.endpoint.version = version }
        // The rest follows from the name; the name itself is a change as well.
        let outcomes = refresh([id])
        return outcomes.isEmpty ? entries[id].map { [.changed($0.record.endpoint)] } ?? [] : outcomes
    }

    /// Accepts the server that answers there next, whatever name it gives itself: an owner said so.
    package mutating func acceptServer(of id: EndpointID) -> [Outcome] {
        guard let endpoint = entries[id]?.record.endpoint else { return [] }
        entries[id]?.record.endpoint.server = nil
        for route in endpoint.routes { mismatches[route.route] = nil }
        return refresh([id])
    }

    /// Forgets an endpoint that no source sees.
    package mutating func forget(_ id: EndpointID) throws(RegistryError) -> Outcome {
        guard let entry = entries[id] else { throw .noSuchEndpoint(id.text) }
        guard entry.servers.isEmpty else { throw .stillSeen(id) }
        retire(id)
        return .removed(entry.record.endpoint)
    }

    private mutating func see(_ sighting: Sighting, at now: Date) -> [Outcome] {
        let server = ServerKey(of: sighting)
        let isNews = sightings[sighting.id] != sighting
        var touched: [EndpointID] = []
        var former: EndpointID?
        if let old = sightings[sighting.id], ServerKey(of: old) != server, let owner = remove(sighting.id) {
            // The app moved (another port, another host): its old place is free before the new one looks for its endpoint.
            touched.append(owner)
            former = owner
        }
        if let old = sightings[sighting.id], old.boot != sighting.boot {
            for route in old.routes { mismatches[route] = nil }
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
                refusals.add(sighting.id, limit(against: sighting))
                _ = remove(sighting.id)
                return outcomes + refresh(touched)
            }
            outcomes += home.evicted.map(Outcome.removed)
            own(server, by: home.id)
            if home.isNew { outcomes += add(home.id) }
        }
        if let id = owners[server] {
            refusals.remove(sighting.id)
            // A line of the configuration is no proof that anything is there.
            if sighting.id.source != .config { entries[id]?.record.endpoint.lastSeen = now }
            // A source that says something new about it is proof as good as a probe's; repeating itself is none.
            if isNews { entries[id]?.liveness.succeeded() }
            remember(sighting, for: id)
            succeed(absorbed, by: id)
            touched.append(id)
            if server.isUSB { entries[id]?.launch = sighting.boot }
            outcomes += join(sighting, on: server)
            outcomes += separate(from: id, at: now)
        }
        return outcomes + refresh(touched)
    }

    /// Shows adverts with the cabled endpoint that reports the same launch.
    private mutating func join(_ sighting: Sighting, on server: ServerKey) -> [Outcome] {
        guard let boot = sighting.boot, !boot.isEmpty, let meeting = server.meeting else { return [] }
        var outcomes: [Outcome] = []
        for other in meetings[meeting, default: []] where !other.isUSB {
            guard let owner = owners[other], entries[owner]?.record.source == .bonjour,
                let advert = members[other]?.compactMap({ sightings[$0] }).first(where: { $0.boot == boot }),
                let id = cabled(other, advert)
            else { continue }
            disown(other)
            own(other, by: id)
            if let left = entries[owner], left.servers.isEmpty {
                retire(owner)
                outcomes.append(.removed(left.record.endpoint))
            }
            outcomes += refresh([owner, id])
        }
        return outcomes
    }

    /// Lists adverts by themselves again that no longer belong to a cabled endpoint.
    private mutating func separate(from id: EndpointID, at now: Date) -> [Outcome] {
        guard let entry = entries[id], entry.record.source == .usb else { return [] }
        let strangers = entry.servers.filter { !belongs($0, to: id) }
        guard !strangers.isEmpty else { return [] }
        let adverts = strangers.flatMap { members[$0] ?? [] }.compactMap { sightings[$0] }
        for advert in adverts { _ = remove(advert.id) }
        return adverts.sorted { $0.id.description < $1.id.description }.flatMap { see($0, at: now) }
    }

    /// Takes a sighting off the board; returns the endpoint whose sighting it was.
    private mutating func remove(_ id: Sighting.ID) -> EndpointID? {
        guard let sighting = sightings.removeValue(forKey: id) else { return nil }
        stale.remove(id)
        let server = ServerKey(of: sighting)
        let owner = owners[server]
        members[server]?.remove(id)
        if members[server]?.isEmpty == true {
            members[server] = nil
            disown(server)
            if let owner, server.isUSB { entries[owner]?.launch = nil }
            if let meeting = server.meeting {
                meetings[meeting]?.remove(server)
                if meetings[meeting]?.isEmpty == true { meetings[meeting] = nil }
            }
        }
        return owner
    }
}
