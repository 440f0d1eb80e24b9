import FoundationEssentials
import Model

/// The limits of the list, and the choice of the endpoint to evict.
///
/// An advertisement has no sender, so no limit can count by machine. Unapproved advertisements therefore share their
/// places: a new one is always listed, and the largest group loses one. The groups are the interface, then the claimed
/// address, then the claimed machine. Approved endpoints take no place of others and lose none.
package struct EndpointLimits: Sendable {
    /// The place of a new endpoint in the list.
    enum Room: Hashable, Sendable {
        case available
        /// This endpoint must be removed first, because of this limit.
        case byEvicting(Endpoint, RefusedSightings.Limit)
        case refused(RefusedSightings.Limit)
    }

    /// The limits of the broker.
    package static let standard = EndpointLimits()

    /// The maximum number of listed endpoints.
    package var total = 4_096
    /// The number of places that unapproved advertisements must leave free.
    package var reserve = 1_024
    /// The maximum number of unapproved endpoints from advertisements for one network address.
    package var perAddress = 64
    /// The maximum number of different apps that one grant registers. Removed ones count, so that a grant can neither
    /// fill the list nor make the retired IDs of others free.
    package var perGrant = 32

    /// Decides whether a sighting may become a new endpoint, and which endpoint must be evicted for it.
    func room(
        for sighting: Sighting,
        in endpoints: EndpointIndex,
        trusts: [EndpointID: EndpointTrust]
    ) -> Room {
        if let key = IdentityKey.candidates(for: sighting).first, let grant = key.grant,
            endpoints.registeredApps(of: grant).subtracting([key]).count >= perGrant
        {
            return .refused(.perGrant)
        }
        let crowd = UnapprovedAdvertisements(endpoints: endpoints, trusts: trusts)
        let evicted: Endpoint?
        if sighting.id.source.isNetwork {
            for address in sighting.claimedAddresses {
                let group = crowd.entries(at: address, of: sighting.id.source)
                guard group.count >= perAddress else { continue }
                // The kernel vouches for the address of a connection, so this machine has used up its own places.
                let isOwnGroup = sighting.id.source == .debuglink
                let evicted = crowd.oldestUnseen(among: group) ?? (isOwnGroup ? nil : crowd.excess(among: group))
                return evicted.map { .byEvicting($0, .perAddress) } ?? .refused(.perAddress)
            }
            guard endpoints.count >= total - reserve else { return .available }
            guard crowd.count >= total - reserve || endpoints.count >= total else { return .available }
            evicted = crowd.oldestUnseen() ?? crowd.excess()
        } else {
            guard endpoints.count >= total else { return .available }
            evicted = crowd.oldestUnseen() ?? crowd.oldestUnseen(ofAnySource: true) ?? crowd.excess()
        }
        return evicted.map { .byEvicting($0, .total) } ?? .refused(.total)
    }
}

/// The advertised endpoints without approval and without a stored secret. They share the places for such endpoints.
private struct UnapprovedAdvertisements {
    let endpoints: EndpointIndex
    let trusts: [EndpointID: EndpointTrust]

    var count: Int { endpoints.advertised.count - trusts.keys.count { endpoints.advertised.contains($0) } }

    /// The entries with this address from one source.
    func entries(at address: ClaimedAddress, of source: Sighting.Source) -> [EndpointIndex.Entry] {
        entries(endpoints.ids(at: address)).filter { $0.record.source == source }
    }

    /// The endpoint among these that was seen last the longest time ago. Nil if all are seen now.
    func oldestUnseen(among group: [EndpointIndex.Entry]) -> Endpoint? {
        group.filter(\.isUnseen).map(\.record.endpoint)
            .min { ($0.lastSeenAt ?? .distantPast, $0.id) < ($1.lastSeenAt ?? .distantPast, $1.id) }
    }

    func oldestUnseen(ofAnySource isAny: Bool = false) -> Endpoint? {
        oldestUnseen(
            among: endpoints.unseen.lazy.filter { trusts[$0] == nil }.compactMap { endpoints[$0] }
                .filter { isAny || $0.record.source.isNetwork }
        )
    }

    /// Returns the endpoint that makes room in the whole list: one of the most claimed address of the busiest interface.
    ///
    /// Each advertisement of a flood calls this, so only one group is read.
    func excess() -> Endpoint? {
        var interfaces: [String?: (endpoints: Int, largest: ClaimedAddress, size: Int)] = [:]
        for (address, ids) in endpoints.idsByAddress {
            let known = interfaces[address.interface]
            let isLargest = known.map { $0.size < ids.count } ?? true
            interfaces[address.interface] = (
                (known?.endpoints ?? 0) + ids.count, isLargest ? address : known?.largest ?? address,
                isLargest ? ids.count : known?.size ?? 0
            )
        }
        let busiest = interfaces.max { $0.value.endpoints < $1.value.endpoints }
        if let busiest, busiest.value.size > 1,
            let endpoint = excess(among: entries(endpoints.ids(at: busiest.value.largest)))
        {
            return endpoint
        }
        // Every address has one endpoint, or the group has approved ones only.
        let byAge = endpoints.advertisedByAge
        let newerHalf = byAge[(byAge.count / 2)...].lazy
        let onBusiest = newerHalf.first { id in
            trusts[id] == nil && endpoints.addresses(of: id).contains { $0.interface == busiest?.key }
        }
        let id = onBusiest ?? newerHalf.first { trusts[$0] == nil } ?? byAge.last { trusts[$0] == nil }
        return id.flatMap { endpoints[$0]?.record.endpoint }
    }

    /// Returns the endpoint that makes room in a group: of the machine with the most endpoints, the longest listed one of the
    /// newer half.
    ///
    /// The older half stays, so a flood displaces its own endpoints and not those that were listed before it.
    func excess(among group: [EndpointIndex.Entry]) -> Endpoint? {
        let machines = Dictionary(grouping: group) { $0.record.machine?.lowercased() }
        let largest = machines.values.map(\.count).max() ?? 0
        let crowd = machines.values.filter { $0.count == largest }.joined().map(\.record.endpoint)
            .sorted { ($0.firstSeenAt, $0.id) < ($1.firstSeenAt, $1.id) }
        return crowd.isEmpty ? nil : crowd[crowd.count / 2]
    }

    private func entries(_ ids: Set<EndpointID>) -> [EndpointIndex.Entry] {
        ids.compactMap { id in trusts[id] == nil ? endpoints[id] : nil }.filter { $0.record.source.isNetwork }
    }
}
