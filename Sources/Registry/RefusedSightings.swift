package import Model

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

    /// The maximum number of stored sightings. Further ones count only in `total`.
    static let capacity = 8_192

    /// The number since the start of the broker.
    package private(set) var total: UInt64 = 0
    private var now: [Sighting.ID: (sighting: Sighting, limit: Limit)] = [:]
    private var idsByAddress: [ClaimedAddress: Set<Sighting.ID>] = [:]

    package var isEmpty: Bool { now.isEmpty }

    /// The limit that currently excludes a sighting; nil if it is listed, or not stored here.
    package func limit(of id: Sighting.ID) -> Limit? { now[id]?.limit }

    /// The number of sightings that this limit currently excludes.
    package func count(by limit: Limit) -> Int { now.values.count { $0.limit == limit } }

    /// Up to this many of the apps that are currently excluded, with their machines, in the order of their names.
    package func examples(_ count: Int) -> [String] {
        let names = now.values.map { "\"\($0.sighting.app)\" on \($0.sighting.machine?.text ?? "an unknown host")" }
        return Array(Set(names).sorted().prefix(count))
    }

    /// A sighting to list when an advertisement with these addresses has gone: one with the same address, else any.
    func next(near addresses: [ClaimedAddress]) -> Sighting? {
        let near = addresses.lazy.compactMap { idsByAddress[$0]?.first }.first
        return (near.flatMap { now[$0] } ?? now.first?.value)?.sighting
    }

    mutating func add(_ sighting: Sighting, _ limit: Limit) {
        total += 1
        guard now.count < Self.capacity || now[sighting.id] != nil else { return }
        remove(sighting.id)
        now[sighting.id] = (sighting, limit)
        for address in sighting.claimedAddresses { idsByAddress[address, default: []].insert(sighting.id) }
    }

    mutating func remove(_ id: Sighting.ID) {
        guard let (sighting, _) = now.removeValue(forKey: id) else { return }
        for address in sighting.claimedAddresses {
            idsByAddress[address]?.remove(id)
            if idsByAddress[address]?.isEmpty == true { idsByAddress[address] = nil }
        }
    }

    mutating func remove(of source: Sighting.Source) {
        for id in now.keys where id.source == source { remove(id) }
    }
}
