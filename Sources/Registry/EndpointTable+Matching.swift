import FoundationEssentials
import Model

/// Matches a newly seen server to its endpoint.
extension EndpointTable {
    /// Finds the endpoint for a server that has none, and creates one if none matches. Returns nil if a limit forbids it.
    ///
    /// - Parameters:
    ///   - server: The server without an endpoint.
    ///   - sighting: The sighting on this server.
    ///   - former: The endpoint of the sighting before it moved to this server.
    ///   - now: The current time.
    /// - Returns: The endpoint, a flag for a new one, and the endpoints that were evicted for it.
    mutating func assignEndpoint(
        for server: ServerKey,
        of sighting: Sighting,
        from former: EndpointID?,
        at now: Date
    ) -> (id: EndpointID, isNew: Bool, evicted: [Endpoint])? {
        if let id = matchAcrossTransports(server, sighting) ?? matchMoved(sighting, from: former)
            ?? matchByIdentity(sighting)
        {
            return (id, false, [])
        }
        guard let evicted = evictions(for: sighting) else { return nil }
        for endpoint in evicted { retire(endpoint.id) }
        let id = freeID(for: sighting)
        let endpoint = Endpoint(
            id: id,
            kind: sighting.kind,
            app: sighting.app,
            name: sighting.name,
            state: .online,
            approval: .pending,
            firstSeenAt: now,
            lastSeenAt: sighting.id.source == .config ? nil : now
        )
        insert(Entry(record: PersistedEndpoint(endpoint: endpoint, source: sighting.id.source, keys: [])))
        recordIdentity(sighting, for: id)
        return (id, true, evicted)
    }

    /// Returns the USB endpoint that an advertisement belongs to. Either an owner approved the advertisement's address
    /// for it, or both report the same launch.
    ///
    /// The network route needs its own approval in either case. A forged advertisement therefore gains a line in the
    /// list and nothing else.
    func matchAcrossTransports(_ server: ServerKey, _ sighting: Sighting) -> EndpointID? {
        guard sighting.id.source == .bonjour, !server.isUSB else { return nil }
        let approved = trusts.filter { id, trust in
            entries[id]?.record.source == .usbmuxd && covers(trust.approval, sighting)
        }
        if let id = approved.keys.min() { return id }
        guard let portKey = server.portKey, let launchID = sighting.launchID, !launchID.isEmpty else { return nil }
        // An endpoint with its own approval keeps its route. Moving the route would move the approval.
        if let id = matchByIdentity(sighting), trusts[id]?.approval != nil { return nil }
        let candidates = Set(serversByPort[portKey, default: []].filter(\.isUSB).compactMap { endpointByServer[$0] })
            .filter { entries[$0]?.launch == launchID }
        guard let id = candidates.first, candidates.count == 1, let endpoint = entries[id]?.record.endpoint else {
            return nil
        }
        // A USB endpoint without a known app does not contradict the advertisement.
        return endpoint.app.isEmpty || endpoint.app == sighting.app ? id : nil
    }

    /// Returns true if the approval applies to one of the sighting's addresses.
    private func covers(_ approval: Approval?, _ sighting: Sighting) -> Bool {
        guard approval != nil else { return false }
        return sighting.routes.contains { route in
            ApprovalPolicy.decision(on: EndpointRoute(route, app: sighting.app), approval) == .approved
        }
    }

    /// Returns true if a network server still belongs to its USB endpoint.
    func belongs(_ server: ServerKey, to id: EndpointID) -> Bool {
        guard let entry = entries[id], entry.record.source == .usbmuxd, !server.isUSB else { return true }
        return sightingsByServer[server, default: []].compactMap { sightings[$0] }.contains { sighting in
            sighting.launchID.map { !$0.isEmpty && $0 == entry.launch } ?? false
                || covers(trusts[id]?.approval, sighting)
        }
    }

    /// Returns the advertisement's endpoint before it moved, while other interfaces and the other IP version still
    /// report the old port.
    ///
    /// On one host a service name has one SRV record (RFC 6763, section 4.1), so those reports will follow.
    private func matchMoved(_ sighting: Sighting, from former: EndpointID?) -> EndpointID? {
        guard sighting.id.source == .bonjour, let former, let entry = entries[former],
            entry.record.source == .bonjour
        else { return nil }
        let rest = entry.servers.flatMap { sightingsByServer[$0] ?? [] }.compactMap { sightings[$0] }
        let isOne = rest.allSatisfy { other in
            (other.name, other.kind, other.app) == (sighting.name, sighting.kind, sighting.app)
                && (other.host, other.role) == (sighting.host, sighting.role)
        }
        return isOne && entry.record.endpoint.app == sighting.app ? former : nil
    }

    /// Returns the endpoint that has one of the sighting's identity keys and no server at present.
    private func matchByIdentity(_ sighting: Sighting) -> EndpointID? {
        for key in IdentityKey.candidates(for: sighting) {
            let free = endpointsByIdentity[key, default: []].filter { id in
                guard let entry = entries[id], entry.record.source == sighting.id.source else { return false }
                // A second server with the same key at the same time is another instance, not a relaunch.
                return entry.servers.allSatisfy { $0.isUSB != (sighting.id.source == .usbmuxd) }
            }
            let exact = free.filter { entries[$0]?.record.host == sighting.host?.text }
            if let id = exact.min() ?? free.min() { return id }
        }
        return nil
    }

    /// Records the identity keys and the host of a sighting. Only the endpoint's original source may add them.
    mutating func recordIdentity(_ sighting: Sighting, for id: EndpointID) {
        guard let source = entries[id]?.record.source, source == sighting.id.source else { return }
        for key in IdentityKey.candidates(for: sighting) where endpointsByIdentity[key]?.contains(id) != true {
            endpointsByIdentity[key, default: []].insert(id)
            entries[id]?.record.keys.append(key)
        }
        if source == .bonjour {
            entries[id]?.record.host = sighting.host?.text
            for address in sighting.networkAddresses where entries[id]?.addresses.insert(address).inserted == true {
                endpointsByAddress[address, default: []].insert(id)
            }
        }
    }

    /// Makes a server part of an endpoint.
    mutating func assign(_ server: ServerKey, to id: EndpointID) {
        endpointByServer[server] = id
        entries[id]?.servers.insert(server)
        unseen.remove(id)
    }

    /// Removes a server from its endpoint.
    mutating func unassign(_ server: ServerKey) {
        guard let id = endpointByServer.removeValue(forKey: server), entries[id] != nil else { return }
        entries[id]?.servers.remove(server)
        if entries[id]?.servers.isEmpty == true { unseen.insert(id) }
    }

    /// Adds an endpoint to all indexes.
    mutating func insert(_ entry: Entry) {
        let id = entry.record.endpoint.id
        entries[id] = entry
        retired.remove(id)
        if entry.record.source == .bonjour { advertised.insert(id) }
        if entry.servers.isEmpty { unseen.insert(id) }
        for key in entry.record.keys { endpointsByIdentity[key, default: []].insert(id) }
        for former in entry.record.formerIDs ?? [] { aliases[former] = id }
    }

    /// Removes an endpoint from all indexes.
    mutating func remove(_ id: EndpointID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        advertised.remove(id)
        unseen.remove(id)
        for server in entry.servers { endpointByServer[server] = nil }
        for former in entry.record.formerIDs ?? [] { aliases[former] = nil }
        for key in entry.record.keys {
            endpointsByIdentity[key]?.remove(id)
            if endpointsByIdentity[key]?.isEmpty == true { endpointsByIdentity[key] = nil }
        }
        for address in entry.addresses {
            endpointsByAddress[address]?.remove(id)
            if endpointsByAddress[address]?.isEmpty == true { endpointsByAddress[address] = nil }
        }
    }

    /// Removes an endpoint and reserves its ID for the same app. Another app with this ID would inherit its tunnels and
    /// grants.
    mutating func retire(_ id: EndpointID) {
        guard let entry = entries[id] else { return }
        remove(id)
        retired.add(id, for: entry.record.keys)
    }

    private func freeID(for sighting: Sighting) -> EndpointID {
        let location: String =
            switch sighting.id.source {
            case .config: ""
            case .usbmuxd: sighting.device.map { "phone-\($0.text.suffix(6))" } ?? ""
            case .bonjour: sighting.host.map { IdentityKey.canonicalHost(of: $0.text) } ?? ""
            }
        let app =
            switch sighting.id.source {
            // The owner chose this name and looks for the endpoint under it, whatever app it is.
            case .config: sighting.name
            case .bonjour, .usbmuxd: sighting.app.isEmpty ? SanitizedText(sighting.kind.text) : sighting.app
            }
        let keys = IdentityKey.candidates(for: sighting)
        var attempt = 1
        while true {
            let id = EndpointID(app: app, location: location, attempt: attempt)
            if entries[id] == nil, aliases[id] == nil, retired.isFree(id, for: keys) { return id }
            attempt += 1
        }
    }
}

/// Replaces endpoints that were listed before their app was identified.
extension EndpointTable {
    /// The endpoints for the same port of the same device that are less specific than this sighting.
    ///
    /// An app that is still starting may report its name late or wrongly. Until then its port identifies the endpoint. An
    /// endpoint that also has a network server is excluded, because its app is known.
    func supersededEndpoints(by sighting: Sighting, on server: ServerKey) -> [EndpointID] {
        guard sighting.id.source == .usbmuxd, let udid = sighting.device else { return [] }
        var kinds: [EndpointKind] = []
        if !sighting.app.isEmpty { kinds.append(sighting.kind) }
        if sighting.kind != .tcp { kinds.append(.tcp) }
        let superseded = kinds.flatMap { kind in
            endpointsByIdentity[IdentityKey(ofNameless: kind, on: udid, port: sighting.port), default: []]
        }
        return Set(superseded).sorted().filter { id in
            guard let entry = entries[id], entry.record.endpoint.app.isEmpty else { return false }
            return entry.servers.isSubset(of: [server])
        }
    }

    /// Makes the IDs of removed endpoints aliases of the endpoint that replaced them.
    mutating func addAliases(_ former: [EndpointID], to id: EndpointID) {
        for old in former where old != id {
            if let previous = aliases[old] { entries[previous]?.record.formerIDs?.removeAll { $0 == old } }
            aliases[old] = id
            let known = entries[id]?.record.formerIDs ?? []
            entries[id]?.record.formerIDs = known + [old]
        }
    }
}
