import FoundationEssentials
import Model

/// How many endpoints are listed, and which one makes room for another.
extension EndpointTable {
    /// The endpoints to forget so that a new one has room; nil when it has none.
    ///
    /// A machine on the network may announce as many apps as it likes. It gets `limitPerAddress` of them, and all unapproved
    /// adverts together leave `reserve` places for cables, configured endpoints and approved ones.
    func makeRoom(for sighting: Sighting) -> [Endpoint]? {
        if sighting.id.source == .bonjour {
            for address in sighting.networkAddresses {
                let there = onAddress[address, default: []]
                guard there.count >= Self.limitPerAddress else { continue }
                return oldest(in: there, isEvictable).map { [$0] }
            }
            guard entries.count >= Self.limit - Self.reserve else { return [] }
            let unapproved = adverts.count - trusts.keys.count { adverts.contains($0) }
            guard unapproved >= Self.limit - Self.reserve || entries.count >= Self.limit else { return [] }
            return oldest(in: unseen, isEvictable).map { [$0] }
        }
        guard entries.count >= Self.limit else { return [] }
        let evicted =
            oldest(in: unseen, isEvictable)
            ?? oldest(in: unseen) { trusts[$0.record.endpoint.id] == nil }
            ?? oldest(in: adverts) { !isTrusted($0) }
        return evicted.map { [$0] }
    }

    /// Which limit `makeRoom(for:)` stopped at.
    func limit(against sighting: Sighting) -> Refusals.Limit {
        let isCrowded =
            sighting.id.source == .bonjour
            && sighting.networkAddresses.contains { onAddress[$0, default: []].count >= Self.limitPerAddress }
        return isCrowded ? .perAddress : .total
    }

    /// An advert that is gone and that no owner approved.
    private func isEvictable(_ entry: Entry) -> Bool {
        entry.servers.isEmpty && entry.record.source == .bonjour && !isTrusted(entry)
    }

    /// Whether an owner approved an advert or gave it a secret.
    private func isTrusted(_ entry: Entry) -> Bool { trusts[entry.record.endpoint.id] != nil }

    private func oldest(in ids: some Sequence<EndpointID>, _ isFit: (Entry) -> Bool) -> Endpoint? {
        ids.lazy.compactMap { entries[$0] }.filter(isFit).map(\.record.endpoint)
            .min { ($0.lastSeen ?? .distantPast, $0.id) < ($1.lastSeen ?? .distantPast, $1.id) }
    }
}

extension Sighting {
    /// The addresses that an advert gives; its host when none of them may be dialled.
    var networkAddresses: [String] {
        let addresses = routes.compactMap { route -> String? in
            if case .lan(let lan) = route { lan.address } else { nil }
        }
        return addresses.isEmpty ? host.map { ["host \($0.text.lowercased())"] } ?? [] : addresses
    }
}

/// Sightings that are not listed because of a limit.
package struct Refusals: Sendable {
    package enum Limit: Hashable, Sendable {
        /// `EndpointTable.limitPerAddress`
        case perAddress
        /// `EndpointTable.limit`, less its reserve for adverts
        case total
    }

    /// So many are known by name; those beyond are in `total` only.
    static let capacity = 8_192

    /// Since the start.
    package private(set) var total: UInt64 = 0
    private var now: [Sighting.ID: Limit] = [:]

    package var isEmpty: Bool { now.isEmpty }

    /// How many that limit keeps off the list now.
    package func count(by limit: Limit) -> Int { now.values.count { $0 == limit } }

    mutating func add(_ id: Sighting.ID, _ limit: Limit) {
        total += 1
        if now.count < Self.capacity || now[id] != nil { now[id] = limit }
    }

    mutating func remove(_ id: Sighting.ID) { now[id] = nil }

    mutating func remove(of source: Sighting.Source) { now = now.filter { $0.key.source != source } }
}

/// The ids of endpoints that are no longer listed, each with the keys of the app that had it.
///
/// Tunnels and grants name endpoints by id. A retired id goes to the same app again and to no other one.
package struct RetiredIDs: Hashable, Sendable, Codable {
    /// The oldest ids above this number are free again.
    static let limit = 4_096

    private var keys: [String: [IdentityKey]] = [:]
    private var order: [String] = []

    package init() {}

    mutating func add(_ id: EndpointID, for keys: [IdentityKey]) {
        if self.keys.updateValue(keys, forKey: id.text) == nil { order.append(id.text) }
        if order.count > Self.limit { self.keys[order.removeFirst()] = nil }
    }

    mutating func remove(_ id: EndpointID) {
        guard keys.removeValue(forKey: id.text) != nil else { return }
        order.removeAll { $0 == id.text }
    }

    /// Whether an app with these keys may have the id.
    func isFree(_ id: EndpointID, for keys: [IdentityKey]) -> Bool {
        self.keys[id.text].map { !Set($0).isDisjoint(with: keys) } ?? true
    }
}
