package import Model

/// The Bonjour service that stands for an app on a cable, where the app cannot announce itself.
///
/// Its name and TXT record are those of the app's own advert, with the mark of a broker (`BrokerTXTMarker`).
package struct Readvertisement: Hashable, Sendable {
    package let endpoint: EndpointID
    package let name: String
    package let type: ServiceType
    package let txt: TXTRecord

    /// Returns the services of a list of endpoints: one for each app that is reachable over USB only.
    package static func all(for endpoints: [Endpoint]) -> [Readvertisement] {
        let announced = Set(endpoints.filter { $0.routes.contains { $0.route.isNetwork } }.compactMap(Launch.init))
        return endpoints.compactMap { endpoint in
            guard endpoint.state == .online || endpoint.state == .suspect, endpoint.approval == .approved,
                !endpoint.routes.isEmpty, endpoint.routes.allSatisfy({ !$0.route.isNetwork && $0.isApproved }),
                Launch(endpoint).map({ !announced.contains($0) }) ?? true
            else { return nil }
            return Readvertisement(endpoint)
        }
    }

    /// The service of an endpoint; nil if no service type fits its kind.
    private init?(_ endpoint: Endpoint) {
        guard let type = Self.type(of: endpoint.kind) else { return nil }
        self.endpoint = endpoint.id
        self.type = type
        let isBundleID = endpoint.routes.contains { $0.appIsBundleID && $0.app == endpoint.app }
        let name =
            if endpoint.kind == .appreveal, isBundleID { "AppReveal-\(endpoint.app)" } else { endpoint.app.text }
        self.name = SanitizedText(name.isEmpty ? endpoint.id.text : name).text
        let facts = [
            ("bundleId", isBundleID ? endpoint.app.text : nil), ("version", endpoint.version?.text),
            ("boot", endpoint.launchID?.text), ("kind", endpoint.kind == .appreveal ? nil : endpoint.kind.text),
        ]
        var txt = TXTRecord(items: endpoint.txt.items.filter { !Self.isOfOneLaunch($0) })
        var short = TXTRecord()
        for (key, value) in facts {
            guard let value else { continue }
            txt.set(key, to: Array(value.utf8))
            short.set(key, to: Array(value.utf8))
        }
        BrokerTXTMarker.set(on: &txt)
        BrokerTXTMarker.set(on: &short)
        // The app's own record may fill the limit.
        self.txt = txt.validationError == nil ? txt : short
    }

    /// True for an item of an earlier launch of the app on the network.
    private static func isOfOneLaunch(_ item: [UInt8]) -> Bool {
        let key = String(decoding: item.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self).lowercased()
        return ["boot", "lan", "port"].contains(key)
    }

    private static func type(of kind: EndpointKind) -> ServiceType? {
        switch kind {
        case .appreveal: .appreveal
        case .appDebug, .debug: .debug
        default: nil
        }
    }

    /// One launch of an app, as far as the app reports it.
    private struct Launch: Hashable {
        let kind: EndpointKind
        let id: SanitizedText

        init?(_ endpoint: Endpoint) {
            guard let id = endpoint.launchID, !id.isEmpty else { return nil }
            (kind, self.id) = (endpoint.kind, id)
        }
    }
}
