import Model

/// The output of `patchbay brokers --nearby --json`.
struct NearbyBrokerRows: Encodable {
    let schema = 1
    let brokers: [NearbyBrokerRow]
}

/// A broker in the output of `patchbay brokers --nearby`.
struct NearbyBrokerRow: Encodable {
    let broker: NearbyBroker
    /// The name under which the broker is joined. Nil if no joined broker has the claimed beginning of the pin.
    let joined: String?

    private enum Keys: String, CodingKey { case joined }

    init(_ broker: NearbyBroker, joined: [JoinedBroker]) {
        self.broker = broker
        let isJoined = { (other: JoinedBroker) in "\(other.pin)".hasPrefix(broker.id.text) }
        self.joined = broker.id.isEmpty ? nil : joined.first(where: isJoined)?.name
    }

    /// Encodes the members of the broker with `joined` beside them.
    func encode(to encoder: any Encoder) throws {
        try broker.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(joined, forKey: .joined)
    }

    static func table(of rows: [NearbyBrokerRow]) -> Table {
        var table = Table(columns: [
            .init(title: "NAME", isFlexible: true), .init(title: "HOST"), .init(title: "ADDRESS", isFlexible: true),
            .init(title: "KEY"), .init(title: "PAIRING"), .init(title: "JOINED"),
        ])
        table.rows = rows.map { row in
            let address = row.broker.addresses.first ?? "unknown"
            let host = address.contains(":") ? "[\(address)]" : address
            return [
                .init(row.broker.name.text, .bold), .init(row.broker.host?.text ?? ""),
                .init("\(host):\(row.broker.port)"), .init(row.broker.id.text, .dim),
                .init(row.broker.pair.rawValue, row.broker.pair == .open ? .green : .dim),
                .init(row.joined ?? "no"),
            ]
        }
        return table
    }
}
