import Model

extension Sighting {
    /// The sighting of a resolved service; nil when its type is none. It is blocked when none of its addresses may be dialled.
    init?(
        of key: ServiceKey,
        _ details: ResolvedService,
        at addresses: some Sequence<IPAddress>,
        seenFrom local: LocalInterfaces
    ) {
        guard let type = ServiceType(key.type) else { return nil }
        let judged = Set(addresses).map { ($0, refusal: $0.refusal(from: key.interface, local)) }
        let ranked = judged.filter { $0.refusal == nil }
            .map { (rank: local.rank(of: $0.0), text: $0.0.description) }
            .sorted { ($0.rank, $0.text) < ($1.rank, $1.text) }
        let kind = EndpointKind(serviceType: type)
        let identity = AdvertisedIdentity(instance: key.instance, kind: kind, txt: details.txt)
        let host = SanitizedText(details.host, limit: 255)
        self.init(
            id: key.id,
            kind: kind,
            app: identity.app,
            appIsBundleID: identity.appIsBundleID,
            name: SanitizedText(key.instance),
            host: host,
            role: identity.role,
            version: identity.version,
            txt: details.txt,
            routes: ranked.map { address in
                .lan(
                    LANRoute(
                        address: address.text,
                        port: details.port,
                        interface: local.names[key.interface],
                        interfaceIndex: UInt32(bitPattern: key.interface),
                        host: host
                    )
                )
            },
            port: details.port,
            boot: identity.boot,
            blocked: ranked.isEmpty
                ? judged.compactMap(\.refusal).min().map { "\($0), so that it is not dialled" } : nil
        )
    }
}
