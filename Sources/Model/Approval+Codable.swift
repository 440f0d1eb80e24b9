/// In JSON `{"cable": "…"}`, `{"network": {"host": …, "addresses": […]}}`, or `"configuration"`.
extension Approval.Place {
    private enum Keys: String, CodingKey { case cable, network }
    private struct Network: Codable {
        let host: Untrusted
        let addresses: [Approval.Address]
    }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            guard word == "configuration" else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "a place's only word is \"configuration\"")
                )
            }
            self = .configuration
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        if let udid = try container.decodeIfPresent(UDID.self, forKey: .cable) {
            self = .cable(udid)
        } else {
            let network = try container.decode(Network.self, forKey: .network)
            self = .network(host: network.host, addresses: network.addresses)
        }
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .configuration:
            var container = encoder.singleValueContainer()
            try container.encode("configuration")
        case .cable(let udid):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(udid, forKey: .cable)
        case .network(let host, let addresses):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(Network(host: host, addresses: addresses), forKey: .network)
        }
    }
}
