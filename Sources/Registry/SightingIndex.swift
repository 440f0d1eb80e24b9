import Model

/// The current sightings, findable by ID, by server and by port.
struct SightingIndex: Sendable {
    private var sightings: [Sighting.ID: Sighting] = [:]
    private var idsByServer: [ServerKey: Set<Sighting.ID>] = [:]
    private var serversByPort: [ServerKey.PortKey: Set<ServerKey>] = [:]
    /// The sightings whose source was lost and has not reported them again.
    private var stale: Set<Sighting.ID> = []

    subscript(_ id: Sighting.ID) -> Sighting? { sightings[id] }

    /// The server of a sighting; nil if there is no such sighting.
    func server(of id: Sighting.ID) -> ServerKey? { sightings[id].map { ServerKey(of: $0) } }

    /// The sightings on these servers, in the order of their IDs.
    func sightings(on servers: some Sequence<ServerKey>) -> [Sighting] {
        servers.flatMap { idsByServer[$0, default: []] }.compactMap { sightings[$0] }
            .sorted { $0.id.description < $1.id.description }
    }

    /// The sightings on one server, in the order of their IDs.
    func sightings(on server: ServerKey) -> [Sighting] { sightings(on: CollectionOfOne(server)) }

    /// The servers with this kind and port.
    func servers(at portKey: ServerKey.PortKey) -> Set<ServerKey> { serversByPort[portKey, default: []] }

    /// Adds a sighting that its source has just reported. A sighting with the same ID must have the same server.
    mutating func insert(_ sighting: Sighting) {
        let server = ServerKey(of: sighting)
        sightings[sighting.id] = sighting
        stale.remove(sighting.id)
        idsByServer[server, default: []].insert(sighting.id)
        if let portKey = server.portKey { serversByPort[portKey, default: []].insert(server) }
    }

    /// Removes a sighting and returns its server. `isLast` is true if the server has no other sighting.
    mutating func remove(_ id: Sighting.ID) -> (server: ServerKey, isLast: Bool)? {
        guard let sighting = sightings.removeValue(forKey: id) else { return nil }
        stale.remove(id)
        let server = ServerKey(of: sighting)
        idsByServer[server]?.remove(id)
        guard idsByServer[server]?.isEmpty == true else { return (server, false) }
        idsByServer[server] = nil
        if let portKey = server.portKey {
            serversByPort[portKey]?.remove(server)
            if serversByPort[portKey]?.isEmpty == true { serversByPort[portKey] = nil }
        }
        return (server, true)
    }

    /// Marks all sightings of a lost source as stale and returns their IDs.
    mutating func markStale(of source: Sighting.Source) -> [Sighting.ID] {
        let ids = sightings.keys.filter { $0.source == source }
        stale.formUnion(ids)
        return ids
    }

    /// The stale sightings of a source.
    func staleIDs(of source: Sighting.Source) -> [Sighting.ID] { stale.filter { $0.source == source } }

    func isStale(_ id: Sighting.ID) -> Bool { stale.contains(id) }
}
