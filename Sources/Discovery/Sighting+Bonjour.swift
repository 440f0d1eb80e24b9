import Model

extension Sighting {
    /// The sighting of a resolved service; nil when none of its addresses may be dialled.
    init?(
        of key: ServiceKey,
        _ details: ServiceDetails,
        at addresses: some Sequence<NetworkAddress>,
        seenFrom local: LocalInterfaces
    ) {
        guard let type = ServiceType(key.type) else { return nil }
        let ranked = Set(addresses).filter { $0.isDialable(from: key.interface) }
            .map { (rank: local.rank(of: $0, interface: key.interface), text: $0.description) }
            .sorted { ($0.rank, $0.text) < ($1.rank, $1.text) }
        guard !ranked.isEmpty else { return nil }
        let kind = EndpointKind(serviceType: type)
        let identity = AdvertisedIdentity(instance: key.instance, kind: kind, txt: details.txt)
        self.init(
            id: key.id,
            kind: kind,
            app: identity.app,
            appIsBundleID: identity.appIsBundleID,
            name: Untrusted(key.instance),
            host: Untrusted(details.host, limit: 255),
            device: identity.device,
            role: identity.role,
            version: identity.version,
            txt: details.txt,
            routes: ranked.map { address in
                .lan(
                    LANRoute(
                        address: address.text,
                        port: details.port,
                        interface: local.names[key.interface],
                        interfaceIndex: UInt32(bitPattern: key.interface)
                    )
                )
            },
            boot: identity.boot
        )
    }
}
