package import FoundationEssentials
package import Model

/// Groups sightings into endpoints. Contains the rules of the registry without its clock, change log and callers.
///
/// Sightings are grouped by server (`ServerKey`), and servers belong to endpoints. A server is matched to an endpoint
/// by a known identity key, or becomes a new endpoint. A network server joins a USB endpoint if both report the same
/// launch. Approval is per route in any case.
package struct EndpointTable: Sendable {
    /// The effect of one event on the list.
    package enum Change: Hashable, Sendable {
        case added(Endpoint)
        case changed(Endpoint)
        case removed(Endpoint)
    }

    /// An endpoint with its servers and its liveness.
    struct Entry: Sendable {
        var record: PersistedEndpoint
        var servers: Set<ServerKey> = []
        /// The network addresses given by the endpoint's advertisements.
        var addresses: Set<String> = []
        /// The launch currently reported over USB.
        var launch: SanitizedText?
        var liveness = Liveness()
    }

    /// The maximum number of listed endpoints.
    package static let limit = 4_096
    /// The number of places that unapproved advertisements must leave free.
    package static let reserve = 1_024
    /// The maximum number of endpoints from advertisements for one network address.
    package static let limitPerAddress = 64

    var entries: [EndpointID: Entry] = [:]
    var sightings: [Sighting.ID: Sighting] = [:]
    var stale: Set<Sighting.ID> = []
    var sightingsByServer: [ServerKey: Set<Sighting.ID>] = [:]
    var endpointByServer: [ServerKey: EndpointID] = [:]
    var serversByPort: [ServerKey.PortKey: Set<ServerKey>] = [:]
    var endpointsByIdentity: [IdentityKey: Set<EndpointID>] = [:]
    /// The current ID of an endpoint by its former ID from the time before its app was identified.
    var aliases: [EndpointID: EndpointID] = [:]
    /// The endpoints that came from advertisements, and the endpoints that no source sees.
    var advertised: Set<EndpointID> = []
    var unseen: Set<EndpointID> = []
    /// The endpoints that came from advertisements, by network address.
    var endpointsByAddress: [String: Set<EndpointID>] = [:]
    /// The approvals and secrets that access control holds.
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
        (entries[id] ?? aliases[id].flatMap { entries[$0] })?.record.endpoint
    }

    package func endpoint(seenAs id: Sighting.ID) -> Endpoint? {
        sightings[id].flatMap { endpointByServer[ServerKey(of: $0)] }.flatMap { self[$0] }
    }

    /// Applies an event of a source and returns the changes.
    package mutating func apply(_ event: SightingEvent, at now: Date) -> [Change] {
        switch event {
        case .seen(let sighting):
            return observe(sighting, at: now)
        case .lost(let id):
            refusals.remove(id)
            for route in sightings[id]?.routes ?? [] { mismatches[route] = nil }
            return removeSightings([id], at: now)
        case .sourceLost(let source):
            refusals.remove(of: source)
            let gone = sightings.keys.filter { $0.source == source }
            stale.formUnion(gone)
            return refresh(gone.compactMap { sightings[$0].flatMap { endpointByServer[ServerKey(of: $0)] } })
        case .sourceReconciled(let source):
            return removeSightings(stale.filter { $0.source == source }, at: now)
        }
    }

    private mutating func removeSightings(_ ids: some Sequence<Sighting.ID>, at now: Date) -> [Change] {
        let touched = Set(ids.compactMap { remove($0) })
        return touched.sorted().flatMap { separate(from: $0, at: now) } + refresh(touched)
    }

    /// Records the result of a probe; nil means success.
    package mutating func report(_ failure: DialError?, of id: EndpointID, at now: Date) -> [Change] {
        guard var entry = entries[id], !entry.servers.isEmpty else { return [] }
        if let failure {
            entry.liveness.failed(failure)
            // The server on this port has ended. The next one is identified again.
            if failure.reason == .refused {
                for route in entry.record.endpoint.routes { mismatches[route.route] = nil }
            }
        } else {
            // Most probes change nothing.
            let isNews = entry.liveness.state != .online
            entry.liveness.succeeded()
            entry.record.endpoint.lastSeenAt = now
            if !isNews {
                entries[id] = entry
                return []
            }
        }
        entries[id] = entry
        return refresh([id])
    }

    /// Updates the approval and secret of an endpoint.
    package mutating func setTrust(_ trust: EndpointTrust, of id: EndpointID, at now: Date) -> [Change] {
        trusts[id] = trust == .none ? nil : trust
        guard let entry = entries[id] else { return [] }
        // The approval may have been the only reason why an advertisement belonged to a USB endpoint.
        let changes = separate(from: id, at: now)
        if entry.servers.isEmpty, entry.record.source == .bonjour, trust.approval == nil {
            // Whether it needs an approval depends on the route under which it returns.
            entries[id]?.record.endpoint.approval = .pending
            var after = entry.record.endpoint
            after.approval = .pending
            return after == entry.record.endpoint ? changes : changes + [.changed(after)]
        }
        return changes + refresh([id])
    }

    /// Records that a different app than expected answered on an approved route.
    package mutating func setMismatch(_ app: SanitizedText, on route: Route, of id: EndpointID) -> [Change] {
        mismatches[route] = app
        return refresh([id])
    }

    /// Records the name that the server of an endpoint reported over an approved route.
    package mutating func setServer(_ name: SanitizedText, version: SanitizedText?, of id: EndpointID) -> [Change] {
        guard let before = entries[id]?.record.endpoint, before.server != name else { return [] }
        entries[id]?.record.endpoint.server = name
        if let version { entries[id]?.record.endpoint.version = version }
        // Refreshing may change other fields. If it does not, the new name alone is a change.
        let changes = refresh([id])
        return changes.isEmpty ? entries[id].map { [.changed($0.record.endpoint)] } ?? [] : changes
    }

    /// Accepts the next server that answers, under any name. Called on an owner's request.
    package mutating func acceptServer(of id: EndpointID) -> [Change] {
        guard let endpoint = entries[id]?.record.endpoint else { return [] }
        entries[id]?.record.endpoint.server = nil
        for route in endpoint.routes { mismatches[route.route] = nil }
        return refresh([id])
    }

    /// Removes an endpoint that no source sees.
    package mutating func removeUnseen(_ id: EndpointID) throws(RegistryError) -> Change {
        guard let entry = entries[id] else { throw .noSuchEndpoint(id.text) }
        guard entry.servers.isEmpty else { throw .stillPresent(id) }
        retire(id)
        return .removed(entry.record.endpoint)
    }

    private mutating func observe(_ sighting: Sighting, at now: Date) -> [Change] {
        let server = ServerKey(of: sighting)
        let isNews = sightings[sighting.id] != sighting
        var touched: [EndpointID] = []
        var former: EndpointID?
        if let old = sightings[sighting.id], ServerKey(of: old) != server, let endpointID = remove(sighting.id) {
            // The app moved to another port or host. Release its old server before the new one is matched.
            touched.append(endpointID)
            former = endpointID
        }
        if let old = sightings[sighting.id], old.launchID != sighting.launchID {
            for route in old.routes { mismatches[route] = nil }
        }
        sightings[sighting.id] = sighting
        stale.remove(sighting.id)
        sightingsByServer[server, default: []].insert(sighting.id)
        if let portKey = server.portKey { serversByPort[portKey, default: []].insert(server) }

        let superseded = supersededEndpoints(by: sighting, on: server)
        var changes = superseded.compactMap { entries[$0].map { Change.removed($0.record.endpoint) } }
        for id in superseded { remove(id) }
        if endpointByServer[server] == nil {
            guard let assignment = assignEndpoint(for: server, of: sighting, from: former, at: now) else {
                refusals.add(sighting.id, limitReached(by: sighting))
                _ = remove(sighting.id)
                return changes + refresh(touched)
            }
            changes += assignment.evicted.map(Change.removed)
            assign(server, to: assignment.id)
            if assignment.isNew { changes += add(assignment.id) }
        }
        if let id = endpointByServer[server] {
            refusals.remove(sighting.id)
            // A line in the configuration does not prove that a server is running.
            if sighting.id.source != .config { entries[id]?.record.endpoint.lastSeenAt = now }
            // A changed sighting proves that the server is alive. A repeated one does not.
            if isNews { entries[id]?.liveness.succeeded() }
            recordIdentity(sighting, for: id)
            addAliases(superseded, to: id)
            touched.append(id)
            if server.isUSB { entries[id]?.launch = sighting.launchID }
            changes += mergeAcrossTransports(sighting, on: server)
            changes += separate(from: id, at: now)
        }
        return changes + refresh(touched)
    }

    /// Moves advertisements to the USB endpoint that reports the same launch.
    private mutating func mergeAcrossTransports(_ sighting: Sighting, on server: ServerKey) -> [Change] {
        guard let launchID = sighting.launchID, !launchID.isEmpty, let portKey = server.portKey else { return [] }
        var changes: [Change] = []
        for other in serversByPort[portKey, default: []] where !other.isUSB {
            guard let endpointID = endpointByServer[other], entries[endpointID]?.record.source == .bonjour,
                let advertisement = sightingsByServer[other]?.compactMap({ sightings[$0] }).first(where: {
                    $0.launchID == launchID
                }),
                let id = matchAcrossTransports(other, advertisement)
            else { continue }
            unassign(other)
            assign(other, to: id)
            if let left = entries[endpointID], left.servers.isEmpty {
                retire(endpointID)
                changes.append(.removed(left.record.endpoint))
            }
            changes += refresh([endpointID, id])
        }
        return changes
    }

    /// Lists advertisements separately again if they no longer belong to a USB endpoint.
    private mutating func separate(from id: EndpointID, at now: Date) -> [Change] {
        guard let entry = entries[id], entry.record.source == .usbmuxd else { return [] }
        let unrelated = entry.servers.filter { !belongs($0, to: id) }
        guard !unrelated.isEmpty else { return [] }
        let detached = unrelated.flatMap { sightingsByServer[$0] ?? [] }.compactMap { sightings[$0] }
        for sighting in detached { _ = remove(sighting.id) }
        return detached.sorted { $0.id.description < $1.id.description }.flatMap { observe($0, at: now) }
    }

    /// Removes a sighting and returns its endpoint.
    private mutating func remove(_ id: Sighting.ID) -> EndpointID? {
        guard let sighting = sightings.removeValue(forKey: id) else { return nil }
        stale.remove(id)
        let server = ServerKey(of: sighting)
        let endpointID = endpointByServer[server]
        sightingsByServer[server]?.remove(id)
        if sightingsByServer[server]?.isEmpty == true {
            sightingsByServer[server] = nil
            unassign(server)
            if let endpointID, server.isUSB { entries[endpointID]?.launch = nil }
            if let portKey = server.portKey {
                serversByPort[portKey]?.remove(server)
                if serversByPort[portKey]?.isEmpty == true { serversByPort[portKey] = nil }
            }
        }
        return endpointID
    }
}
