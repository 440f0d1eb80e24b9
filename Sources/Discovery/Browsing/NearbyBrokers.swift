package import Model

/// The other brokers that advertise themselves as `_patchbay._tcp`. They are no endpoints.
///
/// A broker that is seen on several interfaces is listed once, with every address.
package actor NearbyBrokers {
    /// The kind of the sightings of brokers.
    static let kind = EndpointKind(serviceType: .patchbay)
    /// The maximum number of sightings, because any machine can cause them.
    static let limit = 256

    private var sightings: [Sighting.ID: Sighting] = [:]
    /// The sightings that were not repeated since Avahi was lost.
    private var stale: Set<Sighting.ID> = []

    package init() {}

    /// Applies an event of Bonjour.
    ///
    /// - Returns: False if the event concerns endpoints, and the registry has to apply it.
    package func apply(_ event: SightingEvent) -> Bool {
        switch event {
        case .seen(let sighting):
            guard sighting.kind == Self.kind else { return false }
            stale.remove(sighting.id)
            if sightings.count < Self.limit || sightings[sighting.id] != nil { sightings[sighting.id] = sighting }
            return true
        case .lost(let id):
            return sightings.removeValue(forKey: id) != nil
        case .sourceLost:
            stale = Set(sightings.keys)
            return false
        case .sourceReconciled:
            for id in stale { sightings[id] = nil }
            stale = []
            return false
        }
    }

    /// The brokers, by name. An advertisement without an address that may be dialled has no addresses.
    package func brokers() -> [NearbyBroker] {
        let groups = Dictionary(grouping: sightings.values.sorted { $0.id.description < $1.id.description }) {
            Instance(name: $0.name, machine: $0.machine, port: $0.port)
        }
        return groups.map { instance, sightings in
            let txt = sightings[0].txt
            var seen: Set<String> = []
            return NearbyBroker(
                id: BrokerAdvertisement.id(in: txt),
                name: instance.name,
                machine: instance.machine,
                addresses: sightings.flatMap(\.routes).compactMap(Self.address).filter { seen.insert($0).inserted },
                port: instance.port,
                pair: BrokerAdvertisement.pairState(in: txt)
            )
        }.sorted { ($0.name, $0.machine ?? $0.name, $0.port) < ($1.name, $1.machine ?? $1.name, $1.port) }
    }

    private struct Instance: Hashable {
        let name: SanitizedText
        let machine: SanitizedText?
        let port: UInt16
    }

    /// The address without the port. Only a link-local address needs its interface.
    private static func address(of route: Route) -> String? {
        guard let address = route.address else { return nil }
        return address.lowercased().hasPrefix("fe80") ? route.location : address
    }
}
