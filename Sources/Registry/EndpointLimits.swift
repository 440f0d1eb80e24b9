import FoundationEssentials
package import Model

/// The limits of the list, and the choice of the endpoint to evict.
package struct EndpointLimits: Sendable {
    /// The place of a new endpoint in the list.
    enum Room: Hashable, Sendable {
        case available
        /// This endpoint must be removed first.
        case byEvicting(Endpoint)
        case refused(RefusedSightings.Limit)
    }

    /// The limits of the broker.
    package static let standard = EndpointLimits()

    /// The maximum number of listed endpoints.
    package var total = 4_096
    /// The number of places that unapproved advertisements must leave free.
    package var reserve = 1_024
    /// The maximum number of endpoints from advertisements for one network address.
    package var perAddress = 64
    /// The maximum number of different apps that one grant registers. Removed ones count, so that a grant can neither
    /// fill the list nor make the retired IDs of others free.
    package var perGrant = 32

    /// Decides whether a sighting may become a new endpoint, and which endpoint must be evicted for it.
    ///
    /// A machine on the network may announce any number of apps. At most `perAddress` are listed. All unapproved
    /// advertisements together leave `reserve` places for USB, configured and approved endpoints.
    func room(
        for sighting: Sighting,
        in endpoints: EndpointIndex,
        trusts: [EndpointID: EndpointTrust]
    ) -> Room {
        /// Returns the endpoint that was seen longest ago, among those that fit.
        func oldest(in ids: Set<EndpointID>, _ isFit: (EndpointIndex.Entry) -> Bool) -> Endpoint? {
            ids.lazy.compactMap { endpoints[$0] }.filter(isFit).map(\.record.endpoint)
                .min { ($0.lastSeenAt ?? .distantPast, $0.id) < ($1.lastSeenAt ?? .distantPast, $1.id) }
        }
        /// Returns true if an owner approved the endpoint or stored its secret.
        func isTrusted(_ entry: EndpointIndex.Entry) -> Bool { trusts[entry.record.endpoint.id] != nil }
        /// Returns true for an advertised endpoint that is not seen any more and has no approval or secret.
        func isEvictable(_ entry: EndpointIndex.Entry) -> Bool {
            entry.isUnseen && entry.record.source.isNetwork && !isTrusted(entry)
        }

        if let key = IdentityKey.candidates(for: sighting).first, let grant = key.grant,
            endpoints.registeredApps(of: grant).subtracting([key]).count >= perGrant
        {
            return .refused(.perGrant)
        }
        let evicted: Endpoint?
        if sighting.id.source.isNetwork {
            if let crowded = sighting.claimedAddresses.first(where: { endpoints.ids(at: $0).count >= perAddress }) {
                return oldest(in: endpoints.ids(at: crowded), isEvictable).map(Room.byEvicting) ?? .refused(.perAddress)
            }
            guard endpoints.count >= total - reserve else { return .available }
            let unapproved = endpoints.advertised.count - trusts.keys.count { endpoints.advertised.contains($0) }
            guard unapproved >= total - reserve || endpoints.count >= total else { return .available }
            evicted = oldest(in: endpoints.unseen, isEvictable)
        } else {
            guard endpoints.count >= total else { return .available }
            evicted =
                oldest(in: endpoints.unseen, isEvictable)
                ?? oldest(in: endpoints.unseen) { !isTrusted($0) }
                ?? oldest(in: endpoints.advertised) { !isTrusted($0) }
        }
        return evicted.map(Room.byEvicting) ?? .refused(.total)
    }
}

/// Sightings that are not listed because of a limit.
package struct RefusedSightings: Sendable {
    package enum Limit: Hashable, Sendable {
        /// `EndpointLimits.perAddress`.
        case perAddress
        /// `EndpointLimits.total`, less `reserve` for unapproved advertisements.
        case total
        /// `EndpointLimits.perGrant`.
        case perGrant
    }

    /// The maximum number of sightings stored by ID. Further ones count only in `total`.
    static let capacity = 8_192

    /// The number since the start of the broker.
    package private(set) var total: UInt64 = 0
    private var now: [Sighting.ID: Limit] = [:]

    package var isEmpty: Bool { now.isEmpty }

    /// The limit that currently excludes a sighting; nil if it is listed, or not stored here.
    package func limit(of id: Sighting.ID) -> Limit? { now[id] }

    /// The number of sightings that this limit currently excludes.
    package func count(by limit: Limit) -> Int { now.values.count { $0 == limit } }

    mutating func add(_ id: Sighting.ID, _ limit: Limit) {
        total += 1
        if now.count < Self.capacity || now[id] != nil { now[id] = limit }
    }

    mutating func remove(_ id: Sighting.ID) { now[id] = nil }

    mutating func remove(of source: Sighting.Source) { now = now.filter { $0.key.source != source } }
}
