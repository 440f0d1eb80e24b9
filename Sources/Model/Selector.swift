/// The set of endpoints to which a grant applies.
package enum Selector: Hashable, Sendable {
    case all
    case endpoints(Set<EndpointID>)
    /// Bundle identifiers, or the names under which apps advertise themselves.
    case bundles(Set<String>)
    /// Every endpoint of these hosts of the team.
    case hosts(Set<HostName>)

    /// Returns whether the selector includes an endpoint. The app counts only if an approved route reports it.
    package func includes(_ endpoint: Endpoint, on own: HostName? = nil) -> Bool {
        includes(endpoint.id, approvedApp: endpoint.approvedApp, on: own)
    }

    /// Returns whether the selector includes an endpoint with this `Endpoint.id` and `Endpoint.approvedApp`.
    ///
    /// An ID without a host belongs to the host `own` of this broker, which is nil without a team.
    package func includes(_ id: EndpointID, approvedApp: SanitizedText?, on own: HostName? = nil) -> Bool {
        switch self {
        case .all: true
        case .endpoints(let ids): ids.contains(id) || id.host == nil && own.map { ids.contains(id.on($0)) } ?? false
        case .bundles(let bundles): approvedApp.map { bundles.contains($0.text) } ?? false
        case .hosts(let hosts): (id.host ?? own).map(hosts.contains) ?? false
        }
    }

    /// Returns whether the other selector includes every present and future endpoint of this selector.
    package func isSubset(of other: Selector) -> Bool {
        switch (self, other) {
        case (_, .all): true
        case (.endpoints(let mine), .endpoints(let theirs)): mine.isSubset(of: theirs)
        case (.bundles(let mine), .bundles(let theirs)): mine.isSubset(of: theirs)
        case (.hosts(let mine), .hosts(let theirs)): mine.isSubset(of: theirs)
        case (.endpoints(let ids), .hosts(let hosts)): ids.allSatisfy { $0.host.map(hosts.contains) ?? false }
        // The bundle of an ID can change, so neither kind is ever a subset of the other.
        case (.all, _), (.endpoints, _), (.bundles, _), (.hosts, _): false
        }
    }

    /// Returns the selector for the broker of another host, with that broker's own IDs.
    package func asserted(to host: HostName) -> Selector {
        switch self {
        case .all, .bundles: self
        case .endpoints(let ids): .endpoints(Set(ids.filter { $0.host == host }.map(\.onItsHost)))
        case .hosts(let hosts): hosts.contains(host) ? .all : .endpoints([])
        }
    }
}

/// Encodes as `"all"`, `{"endpoints": […]}`, `{"bundles": […]}` or `{"hosts": […]}`, sorted.
extension Selector: Codable {
    private enum Keys: String, CodingKey { case endpoints, bundles, hosts }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            guard word == "all" else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "a selector's only word is \"all\"")
                )
            }
            self = .all
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        switch container.allKeys {
        case [.endpoints]: self = .endpoints(Set(try container.decode([EndpointID].self, forKey: .endpoints)))
        case [.bundles]: self = .bundles(Set(try container.decode([String].self, forKey: .bundles)))
        case [.hosts]: self = .hosts(Set(try container.decode([HostName].self, forKey: .hosts)))
        default:
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "a selector is \"all\", or has one of \"endpoints\", \"bundles\" and \"hosts\""
                )
            )
        }
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .all:
            var container = encoder.singleValueContainer()
            try container.encode("all")
        case .endpoints(let ids):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(ids.sorted(), forKey: .endpoints)
        case .bundles(let bundles):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(bundles.sorted(), forKey: .bundles)
        case .hosts(let hosts):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(hosts.sorted(), forKey: .hosts)
        }
    }
}
