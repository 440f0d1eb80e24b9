package import FoundationEssentials
package import Model

/// Groups sightings into endpoints. Contains the rules of the registry without its clock, change log and callers.
///
/// Sightings are grouped by server (`ServerKey`), and servers belong to endpoints. A server is matched to an endpoint
/// by a known identity key, or becomes a new endpoint. An advertised server joins a USB or registered endpoint if both
/// report the same launch. Approval is per route in any case.
package struct EndpointTable: Sendable {
    let limits: EndpointLimits
    var list: EndpointIndex
    var sightings = SightingIndex()
    /// The approvals and secrets that access control holds.
    private(set) var trusts: [EndpointID: EndpointTrust]
    /// The time of the last event.
    private(set) var lastEventAt = Date.distantPast
    /// The app that answered on a route instead of the announced one.
    private var mismatches: [Route: SanitizedText] = [:]
    /// The names that the devices report.
    private var deviceNames: [UDID: SanitizedText] = [:]
    private var hints = SameAppHints()
    private var sameLaunches = SameLaunches()
    var splits = SplitEndpoints()
    /// The abilities of the kinds that do not report their own.
    private let abilities: [EndpointKind: EndpointAbilities]
    package internal(set) var refusals = RefusedSightings()

    package init(
        records: [PersistedEndpoint] = [],
        trusts: [EndpointID: EndpointTrust] = [:],
        retired: RetiredIDs = RetiredIDs(),
        abilities: [EndpointKind: EndpointAbilities] = [:],
        limits: EndpointLimits = .standard
    ) {
        self.trusts = trusts
        self.limits = limits
        self.abilities = abilities
        list = EndpointIndex(retired: retired)
        let records = records.map { $0.migrated() }.sorted { $0.endpoint.firstSeenAt < $1.endpoint.firstSeenAt }
        for var record in records where !record.endpoint.isOnOtherHost {
            let earlier = EarlierAdvertisement(of: record)
            record.endpoint.goOffline(reason: "not seen since the broker started")
            let trust = trusts[record.endpoint.id] ?? .none
            record.endpoint.approval = ApprovalPolicy.approval(of: record.endpoint, trust)
            record.endpoint.setAbilities(abilities)
            list.insert(record, earlier: earlier)
        }
    }

    package var endpoints: [Endpoint] { list.all.map(\.record.endpoint).sorted { $0.id < $1.id } }
    package var records: [PersistedEndpoint] { list.all.map(\.record).sorted { $0.endpoint.id < $1.endpoint.id } }
    package var retired: RetiredIDs { list.retired }
    /// Frees retired IDs as `RetiredIDs.free` does.
    package mutating func freeRetired(except named: Set<EndpointID>) { list.retired.free(except: named) }

    package subscript(_ id: EndpointID) -> Endpoint? { list.entry(everCalled: id)?.record.endpoint }

    package func endpoint(seenAs id: Sighting.ID) -> Endpoint? {
        endpointID(seenAs: id).flatMap { list[$0]?.record.endpoint }
    }

    /// Applies an event of a source and returns the changes.
    package mutating func apply(_ event: SightingEvent, at now: Date) -> [Change] {
        lastEventAt = now
        var changes: [Change]
        switch event {
        case .seen(let sighting): changes = observe(sighting, at: now)
        case .lost(let id):
            refusals.remove(id)
            let lost = sightings[id]
            for route in lost?.routes ?? [] { mismatches[route] = nil }
            changes = removeSightings([id], at: now)
            changes += listRefused(insteadOf: lost, at: now)
        case .sourceLost(let source):
            refusals.remove(of: source)
            let gone = sightings.markStale(of: source)
            changes = refresh(gone.compactMap { endpointID(seenAs: $0) })
        case .sourceReconciled(let source):
            if source == .bonjour { list.forgetEarlierAdvertisements() }
            changes = removeSightings(sightings.staleIDs(of: source), at: now)
        }
        return updatingHints(after: changes)
    }

    /// Records the result of a probe; nil means success.
    package mutating func report(_ failure: DialError?, of id: EndpointID, at now: Date) -> [Change] {
        guard let entry = list[id], !entry.isUnseen, !isHeld(entry) else { return [] }
        let separated = failure?.reason == .refused ? sameLaunches.remove(id) : []
        if let failure {
            list.update(id) { $0.liveness.failed(failure) }
            // The server on this port has ended. The next one is identified again.
            if failure.reason == .refused {
                forgetMismatches(of: entry.record.endpoint)
                if let newer = splits.takeRelaunch(of: id, at: now) {
                    return updatingHints(after: joinRelaunch(newer, to: id), of: separated)
                }
            }
        } else {
            splits.separate(id)
            list.update(id) {
                $0.liveness.succeeded()
                $0.record.endpoint.lastSeenAt = now
            }
            // Most probes change nothing.
            if entry.liveness.state == .online, entry.record.endpoint.lastSeenAt != nil { return [] }
        }
        return updatingHints(after: refresh([id]), of: separated)
    }

    /// The authentication code that the source of an approved route reports.
    package func authCode(of id: EndpointID) -> DartAuthCode? {
        guard let entry = list[id] else { return nil }
        let approved = Set(entry.record.endpoint.approvedRoutes.map(\.route))
        return sightings.sightings(on: entry.servers).lazy.filter { !approved.isDisjoint(with: $0.routes) }
            .compactMap(\.authCode).first
    }

    /// Updates the approval and secret of an endpoint.
    package mutating func setTrust(_ trust: EndpointTrust, of id: EndpointID, at now: Date) -> [Change] {
        let isNew = trusts[id]?.approval != trust.approval
        trusts[id] = trust == .none ? nil : trust
        guard let entry = list[id] else { return [] }
        // The approval may have been the only reason why an advertisement belonged to a USB endpoint.
        var changes = separate(from: id, at: now)
        if isNew, trust.approval != nil, entry.record.source.isPhone {
            for server in list.advertised.flatMap({ list[$0]?.servers ?? [] })
            where sightings.sightings(on: server).contains(where: { matcher.anchor(for: $0, on: server) == id }) {
                changes += join(server, to: id)
            }
        }
        if entry.isUnseen, entry.record.source.isNetwork, trust.approval == nil {
            // Whether it needs an approval depends on the route under which it returns.
            list.update(id) { $0.record.endpoint.approval = .pending }
            var after = entry.record.endpoint
            after.approval = .pending
            return updatingHints(after: after == entry.record.endpoint ? changes : changes + [.changed(after)])
        }
        return updatingHints(after: changes + refresh([id]))
    }

    /// Records that a different app than expected answered on an approved route.
    package mutating func setMismatch(_ app: SanitizedText, on route: Route, of id: EndpointID) -> [Change] {
        mismatches[route] = app
        return updatingHints(after: refresh([id]))
    }

    /// Records that an advertisement and an endpoint on a cable reach one launch, unless either has changed since.
    package mutating func setSameLaunch(_ proof: SameLaunch) -> [Change] {
        sameLaunches.insert(proof)
        return updatingHints(after: [], of: [proof.wireless.id, proof.cabled.id])
    }

    /// Records that the server of an endpoint rejected the secret, or that the secret was replaced.
    package mutating func endSameLaunch(of id: EndpointID) -> [Change] {
        updatingHints(after: [], of: sameLaunches.remove(id))
    }

    /// Records the name that the server of an endpoint reported over an approved route.
    package mutating func setServer(_ name: SanitizedText, version: SanitizedText?, of id: EndpointID) -> [Change] {
        guard let before = list[id]?.record.endpoint, before.server != name else { return [] }
        list.update(id) {
            $0.record.endpoint.server = name
            if let version { $0.record.endpoint.version = version }
        }
        // Refreshing may change other fields. If it does not, the new name alone is a change.
        let changes = refresh([id])
        return updatingHints(after: changes.isEmpty ? list[id].map { [.changed($0.record.endpoint)] } ?? [] : changes)
    }

    /// Records the capabilities that the server of an endpoint reported over an approved route.
    package mutating func setCapabilities(_ capabilities: [String], of id: EndpointID) -> [Change] {
        guard let before = list[id]?.record.endpoint else { return [] }
        var after = before
        after.capabilities = capabilities
        after.setAbilities(abilities)
        guard after != before else { return [] }
        list.update(id) { [after] in $0.record.endpoint = after }
        return [.changed(after)]
    }

    /// Updates the names that devices report. New endpoints get IDs made of these names; a listed one keeps its ID.
    package mutating func setDeviceNames(_ names: [UDID: SanitizedText]) -> [Change] {
        let renamed = names.filter { deviceNames[$0] != $1 }
        deviceNames.merge(renamed) { $1 }
        let affected = list.all.filter { entry in
            !entry.isUnseen && entry.record.endpoint.location.udid.map { renamed[$0] != nil } == true
        }
        return updatingHints(after: refresh(affected.map(\.record.endpoint.id)))
    }

    /// Accepts the next server that answers, under any name. Called on an owner's request.
    package mutating func acceptServer(of id: EndpointID) -> [Change] {
        guard let endpoint = list[id]?.record.endpoint else { return [] }
        list.update(id) { $0.record.endpoint.server = nil }
        forgetMismatches(of: endpoint)
        return updatingHints(after: refresh([id]))
    }

    /// Removes an endpoint that no source sees.
    package mutating func removeUnseen(_ id: EndpointID) throws(RegistryError) -> Change {
        guard let entry = list[id] else { throw .noSuchEndpoint(id.text) }
        guard entry.isUnseen || isHeld(entry) else { throw .stillPresent(id) }
        for sighting in sightings.sightings(on: entry.servers) { _ = remove(sighting.id) }
        list.retire(id)
        return .removed(entry.record.endpoint)
    }

    /// Returns whether all sources report that the app is gone, and that Patchbay answers for it.
    private func isHeld(_ entry: EndpointIndex.Entry) -> Bool {
        !entry.isUnseen
            && sightings.sightings(on: entry.servers).allSatisfy {
                if case .offline = $0.availability { true } else { false }
            }
    }

    /// The current matcher. Do not store it (`EndpointMatcher`).
    var matcher: EndpointMatcher {
        EndpointMatcher(endpoints: list, sightings: sightings, trusts: trusts, now: lastEventAt)
    }

    private func endpointID(seenAs id: Sighting.ID) -> EndpointID? {
        sightings.server(of: id).flatMap { list.id(of: $0) }
    }

    /// Updates the mentions in the changed endpoints, in those that mention them, and in `others`. Returns all changes.
    private mutating func updatingHints(after changes: [Change], of others: Set<EndpointID> = []) -> [Change] {
        var affected = others.union(changes.map(\.endpoint.id))
        for id in affected {
            let endpoint = list[id]?.record.endpoint
            affected.formUnion(hints.update(id, endpoint))
            affected.formUnion(sameLaunches.update(id, endpoint))
        }
        return changes
            + affected.sorted().compactMap { id in
                guard var endpoint = list[id]?.record.endpoint else { return nil }
                let hint = hints.hint(for: id)
                let cabled = sameLaunches.cabled(for: id) ?? hints.cabledEndpoint(withLaunchOf: endpoint)
                guard (endpoint.possiblySameAs, endpoint.sameLaunchAs) != (hint, cabled) else { return nil }
                (endpoint.possiblySameAs, endpoint.sameLaunchAs) = (hint, cabled)
                list.update(id) { [endpoint] in $0.record.endpoint = endpoint }
                return .changed(endpoint)
            }
    }

    private mutating func forgetMismatches(of endpoint: Endpoint) {
        for route in endpoint.routes { mismatches[route.route] = nil }
    }
}

/// The effects of a sighting.
extension EndpointTable {
    mutating func observe(_ sighting: Sighting, at now: Date) -> [Change] {
        // The source probes the server again, and reports what it is.
        if matcher.isAmbiguous(sighting) { return [] }
        let server = ServerKey(of: sighting)
        let old = sightings[sighting.id]
        var touched: [EndpointID] = []
        var former: EndpointID?
        if let old, ServerKey(of: old) != server {
            // The app moved to another port or host. Release its old server before the new one is matched.
            former = remove(sighting.id)
            touched = former.map { [$0] } ?? []
        } else if let old, old.launchID != sighting.launchID {
            for route in old.routes { mismatches[route] = nil }
        }
        sightings.insert(sighting)

        let superseded = matcher.superseded(by: sighting, on: server)
        var changes = superseded.compactMap { list[$0].map { Change.removed($0.record.endpoint) } }
        for id in superseded { list.remove(id) }
        if list.id(of: server) == nil {
            guard let added = place(sighting, on: server, movedFrom: former, at: now) else {
                _ = remove(sighting.id)
                return changes + refresh(touched)
            }
            changes += added
        }
        if let id = list.id(of: server) {
            refusals.remove(sighting.id)
            list.update(id) {
                // A line in the configuration does not prove that a server is running.
                if sighting.id.source != .config { $0.record.endpoint.lastSeenAt = now }
                // A changed sighting proves that the server is alive. A repeated one does not.
                if old != sighting { $0.liveness.succeeded() }
                if server.isAnchor { $0.launch = sighting.launchID }
            }
            if old != sighting { list.recordAnswer(of: server) }
            // A port of a phone is reported again only if it answers.
            if old == sighting, sighting.id.source.isPhone { splits.separate(id) }
            list.recordIdentity(sighting, for: id)
            list.addAliases(superseded, to: id)
            touched.append(id)
            changes += mergeAcrossTransports(sighting, on: server)
            changes += separate(from: id, at: now)
        }
        return changes + refresh(touched)
    }

    /// Makes a server part of an endpoint that matches its sighting, or of a new one. Returns nil if a limit forbids a
    /// new one.
    private mutating func place(
        _ sighting: Sighting,
        on server: ServerKey,
        movedFrom former: EndpointID?,
        at now: Date
    ) -> [Change]? {
        if let id = matcher.reclaimedEndpoint(by: sighting, on: server) {
            let displaced = list[id]?.servers ?? []
            list.assign(server, to: id)
            return relist(displaced, at: now) + refresh([id])
        }
        if let id = matcher.endpoint(for: sighting, on: server, movedFrom: former) {
            if list[id]?.liveness.lastFailure?.reason == .refused { list.recordRefusal(of: id) }
            list.assign(server, to: id)
            guard let earlier = matcher.earlierEndpoint(of: sighting, mergedInto: id) else { return [] }
            defer { list.merge(earlier.id, into: id) }
            return [.removed(earlier)]
        }
        guard var changes = makeRoom(for: sighting) else { return nil }
        let deviceName = sighting.device.flatMap { deviceNames[$0] }
        let older = matcher.possibleRelaunch(of: sighting)
        let id = list.add(for: sighting, on: server, deviceName: deviceName, at: now)
        if let older { splits.insert(id, of: older, at: now) }
        if let added = describe(id) { changes.append(.added(added)) }
        return changes
    }

    /// Removes a sighting and returns its endpoint.
    mutating func remove(_ id: Sighting.ID) -> EndpointID? {
        guard let (server, isLast) = sightings.remove(id) else { return nil }
        let endpointID = list.id(of: server)
        if isLast {
            list.unassign(server, at: lastEventAt)
            if let endpointID, server.isAnchor { list.update(endpointID) { $0.launch = nil } }
        }
        return endpointID
    }

    /// Describes endpoints again and returns those that changed.
    mutating func refresh(_ ids: some Sequence<EndpointID>) -> [Change] {
        Set(ids).sorted().compactMap { id in
            guard let before = list[id]?.record.endpoint, let after = describe(id) else { return nil }
            var comparable = before
            comparable.lastSeenAt = after.lastSeenAt
            return comparable == after ? nil : .changed(after)
        }
    }

    /// Stores the description of an endpoint by its current sightings, and returns it.
    private mutating func describe(_ id: EndpointID) -> Endpoint? {
        guard let entry = list[id] else { return nil }
        let seen = sightings.sightings(on: entry.describingServers)
        let describer = EndpointDescriber(
            sightings: seen,
            trust: trusts[id] ?? .none,
            mismatches: mismatches,
            liveness: entry.liveness,
            isStale: seen.allSatisfy { sightings.isStale($0.id) },
            deviceNames: deviceNames,
            abilities: abilities
        )
        let endpoint = describer.describe(entry.record.endpoint)
        list.update(id) {
            $0.record.endpoint = endpoint
            if seen.isEmpty { $0.liveness = Liveness() }
        }
        return endpoint
    }
}
