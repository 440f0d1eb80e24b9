package import Model

extension Sighting {
    /// A sighting of the app `com.example.shop`. Its key is the name of the app unless another one is given.
    package static func sample(
        _ app: String = "com.example.shop",
        source: Source = .bonjour,
        key: String? = nil,
        kind: EndpointKind = .appreveal,
        isBundleID: Bool = true,
        name: String? = nil,
        machine: String? = nil,
        device: UDID? = nil,
        version: String? = nil,
        txt: [String] = [],
        routes: [Route] = [.network()],
        launchID: String? = nil
    ) -> Sighting {
        Sighting(
            id: ID(source: source, key: key ?? app),
            kind: kind,
            app: SanitizedText(app),
            appIsBundleID: isBundleID,
            name: SanitizedText(name ?? app),
            machine: machine.map { SanitizedText($0) },
            device: device,
            version: version.map { SanitizedText($0) },
            txt: TXTRecord(items: txt.map { Array($0.utf8) }),
            routes: routes,
            launchID: launchID.map { SanitizedText($0) }
        )
    }
}
