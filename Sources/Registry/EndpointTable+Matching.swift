import FoundationEssentials
import Model

/// Finding the endpoint that a newly seen server is.
extension EndpointTable {
    /// The endpoint for a server that has none, made if need be; nil when a limit stands against it.
    ///
    /// `former` is the endpoint that the sighting belonged to until it moved here.
    mutating func home(
        for server: ServerKey,
        of sighting: Sighting,
        from former: EndpointID?,
        at now: Date
    ) -> (id: EndpointID, isNew: Bool, evicted: [Endpoint])? {
        if let id = cabled(server, sighting) ?? kept(sighting, by: former) ?? known(sighting) {
            return (id, false, [])
        }
        guard let evicted = makeRoom(for: sighting) else { return nil }
        for endpoint in evicted { retire(endpoint.id) }
        let id = freeID(for: sighting)
        let endpoint = Endpoint(
            id: id,
            kind: sighting.kind,
            app: sighting.app,
            name: sighting.name,
            state: .online,
            approval: .discovered,
            since: now,
            lastSeen: sighting.id.source == .config ? nil : now
        )
        insert(Entry(record: PersistedEndpoint(endpoint: endpoint, source: sighting.id.source, keys: [])))
        remember(sighting, for: id)
        return (id, true, evicted)
    }

    /// The cabled endpoint that an advert is shown with: an owner approved the advert's address for it, or both report the
    /// same launch.
    ///
    /// The network route has its own approval in either case, so that a forged advert gains a line in the list and no more.
    func cabled(_ server: ServerKey, _ sighting: Sighting) -> EndpointID? {
        guard sighting.id.source == .bonjour, !server.isUSB else { return nil }
        let approved = trusts.filter { id, trust in
            entries[id]?.record.source == .usb && covers(trust.approval, sighting)
        }
        if let id = approved.keys.min() { return id }
        guard let meeting = server.meeting, let boot = sighting.boot, !boot.isEmpty else { return nil }
        // An endpoint with an approval of its own keeps its route: moving it would move the approval.
        if let id = known(sighting), trusts[id]?.approval != nil { return nil }
        let cables = Set(meetings[meeting, default: []].filter(\.isUSB).compactMap { owners[$0] })
            .filter { entries[$0]?.launch == boot }
        guard let id = cables.first, cables.count == 1, let endpoint = entries[id]?.record.endpoint else { return nil }
        // A cable that does not know its app contradicts nothing.
        return endpoint.app.isEmpty || endpoint.app == sighting.app ? id : nil
    }

    /// Whether an approval is for one of the sighting's addresses.
    private func covers(_ approval: Approval?, _ sighting: Sighting) -> Bool {
        guard approval != nil else { return false }
        return sighting.routes.contains { route in
            ApprovalPolicy.verdict(on: EndpointRoute(route, app: sighting.app), approval) == .approved
        }
    }

    /// Whether a network server may still be shown with the cabled endpoint that it is in.
    func belongs(_ server: ServerKey, to id: EndpointID) -> Bool {
        guard let entry = entries[id], entry.record.source == .usb, !server.isUSB else { return true }
        return members[server, default: []].compactMap { sightings[$0] }.contains { sighting in
            sighting.boot.map { !$0.isEmpty && $0 == entry.launch } ?? false
                || covers(trusts[id]?.approval, sighting)
        }
    }

    /// The endpoint that an advert belonged to before it moved, while the other interfaces and the other protocol still tell
    /// of the old place: on one host a service's name has one SRV record (RFC 6763, section 4.1), so that they follow.
    private func kept(_ sighting: Sighting, by former: EndpointID?) -> EndpointID? {
        guard sighting.id.source == .bonjour, let former, let entry = entries[former],
            entry.record.source == .bonjour
        else { return nil }
        let rest = entry.servers.flatMap { members[$0] ?? [] }.compactMap { sightings[$0] }
        let isOne = rest.allSatisfy { other in
            (other.name, other.kind, other.app) == (sighting.name, sighting.kind, sighting.app)
                && (other.host, other.role) == (sighting.host, sighting.role)
        }
        return isOne && entry.record.endpoint.app == sighting.app ? former : nil
    }

    /// The endpoint that was known under one of the sighting's keys and that no other server has now.
    private func known(_ sighting: Sighting) -> EndpointID? {
        for key in IdentityKey.candidates(for: sighting) {
            let free = holders[key, default: []].filter { id in
                guard let entry = entries[id], entry.record.source == sighting.id.source else { return false }
                // A second server of the same key at the same time is a twin, not a relaunch.
                return entry.servers.allSatisfy { $0.isUSB != (sighting.id.source == .usb) }
            }
            let exact = free.filter { entries[$0]?.record.host == sighting.host?.text }
            if let id = exact.min() ?? free.min() { return id }
        }
        return nil
    }

    /// Notes under which keys, and on which exact host, an endpoint was seen by the source that it came from.
    mutating func remember(_ sighting: Sighting, for id: EndpointID) {
        guard let source = entries[id]?.record.source, source == sighting.id.source else { return }
        for key in IdentityKey.candidates(for: sighting) where holders[key]?.contains(id) != true {
            holders[key, default: []].insert(id)
            entries[id]?.record.keys.append(key)
        }
        if source == .bonjour {
            entries[id]?.record.host = sighting.host?.text
            for address in sighting.networkAddresses where entries[id]?.addresses.insert(address).inserted == true {
                onAddress[address, default: []].insert(id)
            }
        }
    }

    mutating func own(_ server: ServerKey, by id: EndpointID) {
        owners[server] = id
        entries[id]?.servers.insert(server)
        unseen.remove(id)
    }

    mutating func disown(_ server: ServerKey) {
        guard let id = owners.removeValue(forKey: server), entries[id] != nil else { return }
        entries[id]?.servers.remove(server)
        if entries[id]?.servers.isEmpty == true { unseen.insert(id) }
    }

    mutating func insert(_ entry: Entry) {
        let id = entry.record.endpoint.id
        entries[id] = entry
        retired.remove(id)
        if entry.record.source == .bonjour { adverts.insert(id) }
        if entry.servers.isEmpty { unseen.insert(id) }
        for key in entry.record.keys { holders[key, default: []].insert(id) }
        for former in entry.record.formerIDs ?? [] { successors[former] = id }
    }

    mutating func erase(_ id: EndpointID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        adverts.remove(id)
        unseen.remove(id)
        for server in entry.servers { owners[server] = nil }
        for former in entry.record.formerIDs ?? [] { successors[former] = nil }
        for key in entry.record.keys {
            holders[key]?.remove(id)
            if holders[key]?.isEmpty == true { holders[key] = nil }
        }
        for address in entry.addresses {
            onAddress[address]?.remove(id)
            if onAddress[address]?.isEmpty == true { onAddress[address] = nil }
        }
    }

    /// Erases an endpoint, and keeps its id for the same app: another app with that id would inherit its tunnels and grants.
    mutating func retire(_ id: EndpointID) {
        guard let entry = entries[id] else { return }
        erase(id)
        retired.add(id, for: entry.record.keys)
    }

    private func freeID(for sighting: Sighting) -> EndpointID {
        let place: String =
            switch sighting.id.source {
            case .config: ""
            case .usb: sighting.device.map { "phone-\($0.text.suffix(6))" } ?? ""
            case .bonjour: sighting.host.map { IdentityKey.stem(ofHost: $0.text) } ?? ""
            }
        let app =
            switch sighting.id.source {
            // An endpoint that the owner named is looked for under that name, whatever app it is.
            case .config: sighting.name
            case .bonjour, .usb: sighting.app.isEmpty ? SanitizedText(sighting.kind.text) : sighting.app
            }
        let keys = IdentityKey.candidates(for: sighting)
        var attempt = 1
        while true {
            let id = EndpointID(app: app, place: place, attempt: attempt)
            if entries[id] == nil, successors[id] == nil, retired.isFree(id, for: keys) { return id }
            attempt += 1
        }
    }
}

/// What becomes of an endpoint that was listed before its app had said its name.
extension EndpointTable {
    /// The endpoints that stand for the same port of the same phone and know less of it than this sighting tells.
    ///
    /// An app that is still starting answers the question for its name wrongly or late, and is listed by its port until it
    /// tells. One whose network side is known is none of them: it has a name.
    func lesserEndpoints(than sighting: Sighting, on server: ServerKey) -> [EndpointID] {
        guard sighting.id.source == .usb, let udid = sighting.device else { return [] }
        var kinds: [EndpointKind] = []
        if !sighting.app.isEmpty { kinds.append(sighting.kind) }
        if sighting.kind != .tcp { kinds.append(.tcp) }
        let lesser = kinds.flatMap { kind in
            holders[IdentityKey(ofNameless: kind, on: udid, port: sighting.port), default: []]
        }
        return Set(lesser).sorted().filter { id in
            guard let entry = entries[id], entry.record.endpoint.app.isEmpty else { return false }
            return entry.servers.isSubset(of: [server])
        }
    }

    /// Keeps the ids of endpoints that are gone good for the one that they turned out to be.
    mutating func succeed(_ former: [EndpointID], by id: EndpointID) {
        for old in former where old != id {
            if let previous = successors[old] { entries[previous]?.record.formerIDs?.removeAll { $0 == old } }
            successors[old] = id
            let known = entries[id]?.record.formerIDs ?? []
            entries[id]?.record.formerIDs = known + [old]
        }
    }
}
