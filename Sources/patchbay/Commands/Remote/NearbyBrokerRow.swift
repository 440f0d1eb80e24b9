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
        Table(
            of: rows,
            [
                .init("NAME", .flexible, style: { _ in .bold }) { $0.broker.name.text },
                .init("HOST") { $0.broker.machine?.text ?? "" }, .init("ADDRESS", .flexible, \.address),
                .init("KEY", style: { _ in .dim }) { $0.broker.id.text },
                .init("PAIRING", style: { $0.broker.pair == .open ? .green : .dim }) { $0.broker.pair.rawValue },
                .init("JOINED") { $0.joined ?? "no" },
            ]
        )
    }

    private var address: String {
        let address = broker.addresses.first ?? "unknown"
        return "\(address.contains(":") ? "[\(address)]" : address):\(broker.port)"
    }
}
