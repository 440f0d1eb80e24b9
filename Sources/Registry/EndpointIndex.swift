import FoundationEssentials
import Model

/// The listed endpoints, findable by ID, former ID, server, identity key and network address.
struct EndpointIndex: Sendable {
    /// An endpoint with its servers and its liveness.
    struct Entry: Sendable {
        var record: PersistedEndpoint
        fileprivate(set) var servers: Set<ServerKey> = []
        /// The launch currently reported over USB, or by the app's registration.
        var launch: SanitizedText?
        var liveness = Liveness()
        /// Servers that refused a connection while another server of the endpoint appeared. They are not described.
        fileprivate(set) var refusedServers: Set<ServerKey> = []
        /// The advertisement of an earlier run, until the source has reported everything once.
        fileprivate(set) var earlier: EarlierAdvertisement?

        fileprivate init(_ record: PersistedEndpoint) { self.record = record }

        /// The servers that describe the endpoint.
        var describingServers: Set<ServerKey> {
            let answering = servers.subtracting(refusedServers)
            return answering.isEmpty ? servers : answering
        }

        /// True if no source sees the endpoint.
        var isUnseen: Bool { servers.isEmpty }
    }

    /// The maximum number of aliases of one endpoint that come from merges. Beyond it the oldest ends.
    static let mergedLimit = 8

    private var entries: [EndpointID: Entry] = [:]
    private var idByServer: [ServerKey: EndpointID] = [:]
    private var idsByIdentity: [IdentityKey: Set<EndpointID>] = [:]
    /// The endpoints that came from advertisements, by their last addresses.
    private(set) var idsByAddress: [ClaimedAddress: Set<EndpointID>] = [:]
    /// The current ID of an endpoint by a former ID. An endpoint has a former ID if its app was identified later, or if
    /// another endpoint was merged into it.
    private var aliases: [EndpointID: EndpointID] = [:]
    /// The endpoints that came from advertisements.
    private(set) var advertised: Set<EndpointID> = []
    /// The same endpoints, the longest listed one first.
    private(set) var advertisedByAge: [EndpointID] = []
    /// The endpoints that no source sees.
    private(set) var unseen: Set<EndpointID> = []
    var retired: RetiredIDs

    init(retired: RetiredIDs = RetiredIDs()) { self.retired = retired }

    var count: Int { entries.count }
    var all: some Collection<Entry> { entries.values }
    var ids: some Collection<EndpointID> { entries.keys }

    subscript(_ id: EndpointID) -> Entry? { entries[id] }

    /// The endpoint with this ID or former ID.
    func entry(everCalled id: EndpointID) -> Entry? { entries[id] ?? aliases[id].flatMap { entries[$0] } }

    func id(of server: ServerKey) -> EndpointID? { idByServer[server] }
    func ids(with key: IdentityKey) -> Set<EndpointID> { idsByIdentity[key, default: []] }
    func addresses(of id: EndpointID) -> [ClaimedAddress] { entries[id]?.record.place?.addresses ?? [] }
    func ids(at address: ClaimedAddress) -> Set<EndpointID> { idsByAddress[address, default: []] }

    /// The apps that a grant has registered, listed or removed.
    func registeredApps(of grant: Substring) -> Set<IdentityKey> {
        let listed = entries.values.lazy.filter { $0.record.source == .registration }.flatMap(\.record.keys)
        return Set(listed.filter { $0.grant == grant }).union(retired.allKeys.filter { $0.grant == grant })
    }

    /// Changes the values of an endpoint. Does nothing if the endpoint is not listed.
    mutating func update(_ id: EndpointID, _ change: (inout Entry) -> Void) {
        guard var entry = entries[id] else { return }
        change(&entry)
        entries[id] = entry
    }

    /// Adds a new endpoint for a server that matches no other, and returns its ID.
    mutating func add(
        for sighting: Sighting,
        on server: ServerKey,
        deviceName: SanitizedText? = nil,
        at now: Date
    ) -> EndpointID {
        let endpoint = Endpoint(
            id: freeID(for: sighting, deviceName: deviceName),
            kind: sighting.kind,
            app: sighting.app,
            name: sighting.name,
            state: .online,
            approval: .pending,
            firstSeenAt: now,
            lastSeenAt: sighting.id.source == .config ? nil : now
        )
        insert(PersistedEndpoint(endpoint: endpoint, source: sighting.id.source, keys: []))
        recordIdentity(sighting, for: endpoint.id)
        assign(server, to: endpoint.id)
        return endpoint.id
    }

    /// Adds an endpoint that no source sees. An alias with its ID ends.
    ///
    /// `earlier` is the advertisement of an earlier run.
    mutating func insert(_ record: PersistedEndpoint, earlier: EarlierAdvertisement? = nil) {
        let id = record.endpoint.id
        removeAlias(id)
        entries[id] = Entry(record)
        entries[id]?.earlier = earlier
        if record.source == .registration { entries[id]?.record.endpoint.registered = true }
        retired.remove(id)
        if record.source.isNetwork, advertised.insert(id).inserted { advertisedByAge.append(id) }
        unseen.insert(id)
        for key in record.keys { idsByIdentity[key, default: []].insert(id) }
        for address in record.place?.addresses ?? [] { idsByAddress[address, default: []].insert(id) }
        for former in record.formerIDs ?? [] { aliases[former] = id }
        setFormerIDs(record.formerIDs ?? [], of: id)
    }

    /// Forgets the advertisements of the earlier run.
    mutating func forgetEarlierAdvertisements() {
        for id in entries.keys where entries[id]?.earlier != nil { entries[id]?.earlier = nil }
    }

    /// Removes an endpoint.
    mutating func remove(_ id: EndpointID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        if advertised.remove(id) != nil { advertisedByAge.removeAll { $0 == id } }
        unseen.remove(id)
        for server in entry.servers { idByServer[server] = nil }
        for former in entry.record.formerIDs ?? [] { aliases[former] = nil }
        for key in entry.record.keys { idsByIdentity.remove(id, at: key) }
        for address in entry.record.place?.addresses ?? [] { idsByAddress.remove(id, at: address) }
    }

    /// Removes an endpoint and reserves its ID and its former IDs for the same app. Another app with such an ID would
    /// inherit its tunnels and grants.
    mutating func retire(_ id: EndpointID, isEvicted: Bool = false) {
        guard let entry = entries[id] else { return }
        remove(id)
        let keys = IdentityKey.reservations(of: entry.record)
        for reserved in [id] + (entry.record.formerIDs ?? []) where !retired.contains(reserved) {
            if isEvicted { retired.addEvicted(reserved, for: keys) } else { retired.add(reserved, for: keys) }
        }
    }

    /// Removes an endpoint whose server is now part of another endpoint, and makes its ID an alias of that endpoint.
    ///
    /// Tunnels and URLs with the old ID lead to the other endpoint. The ID stays reserved: the app gets it back when it
    /// is listed separately again. An endpoint has at most `mergedLimit` such aliases, because a network source can
    /// cause any number of merges.
    mutating func merge(_ old: EndpointID, into id: EndpointID) {
        guard let entry = entries[old] else { return }
        retire(old)
        let merged = (entries[id]?.record.formerIDs ?? []).filter { retired.contains($0) }
        for oldest in merged.dropLast(Self.mergedLimit - 1) { removeAlias(oldest) }
        addAliases([old] + (entry.record.formerIDs ?? []), to: id)
    }

    /// Makes a server part of an endpoint.
    mutating func assign(_ server: ServerKey, to id: EndpointID) {
        idByServer[server] = id
        entries[id]?.servers.insert(server)
        unseen.remove(id)
    }

    /// Records that the current servers of an endpoint refused a connection.
    mutating func recordRefusal(of id: EndpointID) { update(id) { $0.refusedServers = $0.servers } }

    /// Records that a server answers.
    mutating func recordAnswer(of server: ServerKey) {
        if let id = idByServer[server] { entries[id]?.refusedServers.remove(server) }
    }

    /// Removes a server from its endpoint.
    mutating func unassign(_ server: ServerKey, at now: Date? = nil) {
        guard let id = idByServer.removeValue(forKey: server) else { return }
        entries[id]?.servers.remove(server)
        entries[id]?.refusedServers.remove(server)
        guard entries[id]?.isUnseen == true else { return }
        unseen.insert(id)
        entries[id]?.record.place?.seenUntil = now
    }

    /// Records the identity keys, the machine and the place of a sighting. Only the endpoint's original source may add
    /// them.
    mutating func recordIdentity(_ sighting: Sighting, for id: EndpointID) {
        guard let source = entries[id]?.record.source, source == sighting.id.source else { return }
        for key in IdentityKey.candidates(for: sighting) where !ids(with: key).contains(id) {
            idsByIdentity[key, default: []].insert(id)
            entries[id]?.record.keys.append(key)
        }
        if !sighting.isPartial, case .usb(let usb) = sighting.routes.first { entries[id]?.record.usb = usb }
        guard source.isNetwork else { return }
        entries[id]?.record.machine = sighting.machine?.text
        let old = entries[id]?.record.place
        let new = old?.updated(by: sighting) ?? AdvertisedPlace(sighting)
        guard new != old else { return }
        for address in old?.addresses ?? [] { idsByAddress.remove(id, at: address) }
        for address in new.addresses { idsByAddress[address, default: []].insert(id) }
        entries[id]?.record.place = new
    }

    /// Makes the IDs of removed endpoints aliases of the endpoint that replaced them.
    mutating func addAliases(_ former: [EndpointID], to id: EndpointID) {
        for old in former where old != id {
            removeAlias(old)
            aliases[old] = id
            setFormerIDs((entries[id]?.record.formerIDs ?? []) + [old], of: id)
        }
    }

    private mutating func removeAlias(_ alias: EndpointID) {
        guard let id = aliases.removeValue(forKey: alias) else { return }
        setFormerIDs((entries[id]?.record.formerIDs ?? []).filter { $0 != alias }, of: id)
    }

    private mutating func setFormerIDs(_ ids: [EndpointID], of id: EndpointID) {
        entries[id]?.record.formerIDs = ids.isEmpty ? nil : ids
        entries[id]?.record.endpoint.formerIDs = ids.isEmpty ? nil : ids
    }
}

extension Dictionary where Value == Set<EndpointID> {
    /// Removes an ID from the set of a key, and the key with its last ID.
    fileprivate mutating func remove(_ id: EndpointID, at key: Key) {
        self[key]?.remove(id)
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}
