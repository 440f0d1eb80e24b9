import FoundationEssentials
import Model

/// The limits of the list, and the choice of the endpoint to evict.
extension EndpointTable {
    /// The endpoints to evict to make room for a new one; nil if there is no room.
    ///
    /// A machine on the network may announce any number of apps. At most `limitPerAddress` are listed. All unapproved
    /// advertisements together leave `reserve` places for USB, configured and approved endpoints.
    func evictions(for sighting: Sighting) -> [Endpoint]? {
        if sighting.id.source == .bonjour {
            for address in sighting.networkAddresses {
                let there = endpointsByAddress[address, default: []]
                guard there.count >= Self.limitPerAddress else { continue }
                return oldest(in: there, isEvictable).map { [$0] }
            }
            guard entries.count >= Self.limit - Self.reserve else { return [] }
            let unapproved = advertised.count - trusts.keys.count { advertised.contains($0) }
            guard unapproved >= Self.limit - Self.reserve || entries.count >= Self.limit else { return [] }
            return oldest(in: unseen, isEvictable).map { [$0] }
        }
        guard entries.count >= Self.limit else { return [] }
        let evicted =
            oldest(in: unseen, isEvictable)
            ?? oldest(in: unseen) { trusts[$0.record.endpoint.id] == nil }
            ?? oldest(in: advertised) { !isTrusted($0) }
        return evicted.map { [$0] }
    }

    /// The limit because of which `makeRoom(for:)` returned nil.
    func limitReached(by sighting: Sighting) -> Refusals.Limit {
        let isCrowded =
            sighting.id.source == .bonjour
            && sighting.networkAddresses.contains { endpointsByAddress[$0, default: []].count >= Self.limitPerAddress }
        return isCrowded ? .perAddress : .total
    }

    /// Returns true for an advertised endpoint that is not seen any more and has no approval or secret.
    private func isEvictable(_ entry: Entry) -> Bool {
        entry.servers.isEmpty && entry.record.source == .bonjour && !isTrusted(entry)
    }

    /// Returns true if an owner approved the endpoint or stored its secret.
    private func isTrusted(_ entry: Entry) -> Bool { trusts[entry.record.endpoint.id] != nil }

    private func oldest(in ids: some Sequence<EndpointID>, _ isFit: (Entry) -> Bool) -> Endpoint? {
        ids.lazy.compactMap { entries[$0] }.filter(isFit).map(\.record.endpoint)
            .min { ($0.lastSeenAt ?? .distantPast, $0.id) < ($1.lastSeenAt ?? .distantPast, $1.id) }
    }
}

extension Sighting {
    /// The addresses of an advertisement; its host if none of them may be dialled.
    var networkAddresses: [String] {
        let addresses = routes.compactMap { route -> String? in
            if case .network(let network) = route { network.address } else { nil }
        }
        return addresses.isEmpty ? host.map { ["host \($0.text.lowercased())"] } ?? [] : addresses
    }
}

/// Sightings that are not listed because of a limit.
package struct Refusals: Sendable {
    package enum Limit: Hashable, Sendable {
        /// `EndpointTable.limitPerAddress`.
        case perAddress
        /// `EndpointTable.limit`, less `reserve` for unapproved advertisements.
        case total
    }

    /// The maximum number of sightings stored by ID. Further ones count only in `total`.
    static let capacity = 8_192

    /// The number since the start of the broker.
    package private(set) var total: UInt64 = 0
    private var now: [Sighting.ID: Limit] = [:]

    package var isEmpty: Bool { now.isEmpty }

    /// The number of sightings that this limit currently excludes.
    package func count(by limit: Limit) -> Int { now.values.count { $0 == limit } }

    mutating func add(_ id: Sighting.ID, _ limit: Limit) {
        total += 1
        if now.count < Self.capacity || now[id] != nil { now[id] = limit }
    }

    mutating func remove(_ id: Sighting.ID) { now[id] = nil }

    mutating func remove(of source: Sighting.Source) { now = now.filter { $0.key.source != source } }
}

/// The IDs of endpoints that are no longer listed, each with the identity keys of its app.
///
/// Tunnels and grants refer to endpoints by ID. A retired ID is assigned again only to the same app.
package struct RetiredIDs: Hashable, Sendable, Codable {
    /// The maximum number of retired IDs. Above it the oldest ones become free again.
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

    /// Returns true if an app with these keys may have the ID.
    func isFree(_ id: EndpointID, for keys: [IdentityKey]) -> Bool {
        self.keys[id.text].map { !Set($0).isDisjoint(with: keys) } ?? true
    }
}
