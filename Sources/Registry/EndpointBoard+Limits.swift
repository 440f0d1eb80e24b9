import FoundationEssentials
import Model

/// How many endpoints are listed, and which one makes room for another.
extension EndpointBoard {
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
            let unapproved = entries.values.count { $0.record.source == .bonjour && !isTrusted($0) }
            guard unapproved >= Self.limit - Self.reserve || entries.count >= Self.limit else { return [] }
            return oldest(in: entries.keys, isEvictable).map { [$0] }
        }
        guard entries.count >= Self.limit else { return [] }
        let evicted =
            oldest(in: entries.keys, isEvictable)
            ?? oldest(in: entries.keys) { $0.servers.isEmpty && trusts[$0.record.endpoint.id] == nil }
            ?? oldest(in: entries.keys) { $0.record.source == .bonjour && !isTrusted($0) }
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

    private func isTrusted(_ entry: Entry) -> Bool {
        let id = entry.record.endpoint.id
        return trusts[id] != nil || entry.record.endpoint.approval == .approved
    }

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
