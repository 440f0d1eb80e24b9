import Model

/// The advertisement of an endpoint at the end of an earlier run.
///
/// After a restart, advertisements arrive in any order, and several may have the identity key of one endpoint. The one
/// that was seen last keeps the endpoint, so a lookalike on the same machine cannot take its ID and its approval.
struct EarlierAdvertisement: Sendable {
    /// The exact SRV target.
    private let machine: String?
    private let name: SanitizedText
    private let ports: Set<UInt16>

    /// Returns nil unless the record came from advertisements.
    init?(of record: PersistedEndpoint) {
        guard record.source == .bonjour else { return nil }
        machine = record.machine
        name = record.endpoint.name
        ports = Set(record.endpoint.routes.filter { $0.route.machine != nil }.map(\.route.port))
    }

    /// Returns how well a sighting fits: 2 for machine and port, 1 for machine and instance name, else 0.
    func fit(of sighting: Sighting) -> Int {
        guard sighting.machine?.text == machine else { return 0 }
        return ports.contains(sighting.port) ? 2 : sighting.name == name ? 1 : 0
    }
}

extension EndpointMatcher {
    /// Returns the endpoint of an earlier run that a sighting fits better than the sightings that it has now.
    func reclaimedEndpoint(by sighting: Sighting, on server: ServerKey) -> EndpointID? {
        guard sighting.id.source == .bonjour, anchor(for: sighting, on: server) == nil else { return nil }
        let fits = Set(IdentityKey.candidates(for: sighting).flatMap { endpoints.ids(with: $0) }).sorted()
            .compactMap { id -> (id: EndpointID, fit: Int)? in
                guard let entry = endpoints[id], let earlier = entry.earlier else { return nil }
                let current = sightings.sightings(on: entry.servers).map(earlier.fit).max() ?? 0
                let fit = earlier.fit(of: sighting)
                return fit > current ? (id, fit) : nil
            }
        return fits.max { $0.fit < $1.fit }?.id
    }
}
