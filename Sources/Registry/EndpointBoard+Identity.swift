import FoundationEssentials
import Model

/// Finding the endpoint that a newly seen server is.
extension EndpointBoard {
    /// The endpoint for a server that has none, made if need be; nil when a limit stands against it.
    ///
    /// `former` is the endpoint that the sighting belonged to until it moved here.
    mutating func home(
        for server: Server,
        of sighting: Sighting,
        from former: EndpointID?,
        at now: Date
    ) -> (id: EndpointID, isNew: Bool, evicted: [Endpoint])? {
        if let id = met(server, sighting) ?? kept(sighting, by: former) ?? known(sighting) { return (id, false, []) }
        if sighting.id.source == .bonjour, let host = hostKey(of: sighting),
            onHost[host, default: []].count >= Self.limitPerHost
        {
            return nil
        }
        var evicted: [Endpoint] = []
        if entries.count >= Self.limit {
            guard let oldest = evictable() else { return nil }
            evicted.append(oldest)
            erase(oldest.id)
        }
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
        insert(Entry(record: EndpointRecord(endpoint: endpoint, keys: [], host: sighting.host?.text)))
        remember(sighting, for: id)
        return (id, true, evicted)
    }

    /// The endpoint of the same app on the other side of the cable.
    ///
    /// mDNS proves nothing and phones do not say over the cable what they are called on the network, so it takes this much:
    /// the same port answers the same protocol on both, the apps' names do not contradict each other, and there is exactly
    /// one candidate on either side.
    private func met(_ server: Server, _ sighting: Sighting) -> EndpointID? {
        guard let meeting = server.meeting, let all = meetings[meeting] else { return nil }
        let same = all.filter { $0.isUSB == server.isUSB }
        let others = all.filter { $0.isUSB != server.isUSB }
        guard same.count == 1, others.count == 1, let other = others.first, let id = owners[other] else { return nil }
        guard let known = members[other]?.first.flatMap({ sightings[$0] }) else { return nil }
        let contradict = sighting.appIsBundleID && known.appIsBundleID && sighting.app != known.app
        return contradict ? nil : id
    }

    /// The endpoint that an advert belonged to before it moved, while the other interfaces and the other protocol still tell
    /// of the old place: on one host a service's name has one SRV record (RFC 6763, section 4.1), so that they follow.
    private func kept(_ sighting: Sighting, by former: EndpointID?) -> EndpointID? {
        guard sighting.id.source == .bonjour, let former, let entry = entries[former] else { return nil }
        let rest = entry.servers.flatMap { members[$0] ?? [] }.compactMap { sightings[$0] }
        let isOne = rest.allSatisfy { other in
            other.id.source != .bonjour
                || (other.name, other.kind, other.app) == (sighting.name, sighting.kind, sighting.app)
                    && (other.host, other.role) == (sighting.host, sighting.role)
        }
        return isOne ? former : nil
    }

    /// The endpoint that was known under one of the sighting's keys and is not somebody else's now.
    private func known(_ sighting: Sighting) -> EndpointID? {
        for key in IdentityKey.candidates(for: sighting) {
            let free = holders[key, default: []].filter { id in
                // A second server of the same key at the same time is a twin, not a relaunch. One on the other side of the
                // cable is neither: it joins.
                entries[id]?.servers.allSatisfy { $0.isUSB != (sighting.id.source == .usb) } ?? false
            }
            let exact = free.filter { entries[$0]?.record.host == sighting.host?.text }
            if let id = exact.min() ?? free.min() { return id }
        }
        return nil
    }

    /// Notes under which keys, and on which exact host, an endpoint was seen.
    mutating func remember(_ sighting: Sighting, for id: EndpointID) {
        guard entries[id] != nil else { return }
        for key in IdentityKey.candidates(for: sighting) where holders[key]?.contains(id) != true {
            holders[key, default: []].insert(id)
            entries[id]?.record.keys.append(key)
        }
        if sighting.id.source == .bonjour, let host = sighting.host {
            entries[id]?.record.host = host.text
            if let key = hostKey(of: sighting) { onHost[key, default: []].insert(id) }
        }
    }

    mutating func own(_ server: Server, by id: EndpointID) {
        owners[server] = id
        entries[id]?.servers.insert(server)
    }

    mutating func insert(_ entry: Entry) {
        let id = entry.record.endpoint.id
        entries[id] = entry
        for key in entry.record.keys { holders[key, default: []].insert(id) }
        for former in entry.record.formerIDs ?? [] { successors[former] = id }
        if let host = entry.record.host { onHost[IdentityKey.stem(ofHost: host), default: []].insert(id) }
    }

    mutating func erase(_ id: EndpointID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        for server in entry.servers { owners[server] = nil }
        for former in entry.record.formerIDs ?? [] { successors[former] = nil }
        for key in entry.record.keys {
            holders[key]?.remove(id)
            if holders[key]?.isEmpty == true { holders[key] = nil }
        }
        for host in onHost.keys where onHost[host]?.remove(id) != nil && onHost[host]?.isEmpty == true {
            onHost[host] = nil
        }
    }

    /// The endpoint to forget for a new one: the one that has been offline longest and that nobody approved.
    private func evictable() -> Endpoint? {
        entries.values.lazy.filter { $0.servers.isEmpty && $0.record.endpoint.approval == .discovered }
            .map(\.record.endpoint).min { $0.lastSeen ?? .distantPast < $1.lastSeen ?? .distantPast }
    }

    private func hostKey(of sighting: Sighting) -> String? {
        sighting.host.map { IdentityKey.stem(ofHost: $0.text) }
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
            // Whoever gave it a name looks for it under that name, whatever app it is.
            case .config: sighting.name
            case .bonjour, .usb: sighting.app.isEmpty ? Untrusted(sighting.kind.text) : sighting.app
            }
        var attempt = 1
        while true {
            let id = EndpointID(app: app, place: place, attempt: attempt)
            if entries[id] == nil { return id }
            attempt += 1
        }
    }
}
