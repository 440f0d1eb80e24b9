/// Which endpoints a grant is about.
package enum Selector: Hashable, Sendable {
    case all
    case endpoints(Set<EndpointID>)
    /// Bundle identifiers, or the names under which apps advertise themselves.
    case bundles(Set<String>)

    /// Whether an endpoint is selected. Its app counts only as an approved route reports it.
    package func includes(_ endpoint: Endpoint) -> Bool { includes(endpoint.id, approvedApp: endpoint.approvedApp) }

    /// The same by `Endpoint.id` and `Endpoint.approvedApp`.
    package func includes(_ id: EndpointID, approvedApp: SanitizedText?) -> Bool {
        switch self {
        case .all: true
        case .endpoints(let ids): ids.contains(id)
        case .bundles(let bundles): approvedApp.map { bundles.contains($0.text) } ?? false
        }
    }

    /// Whether every endpoint, present or future, that this includes is included by the other one too.
    package func isSubset(of other: Selector) -> Bool {
        switch (self, other) {
        case (_, .all): true
        case (.endpoints(let mine), .endpoints(let theirs)): mine.isSubset(of: theirs)
        case (.bundles(let mine), .bundles(let theirs)): mine.isSubset(of: theirs)
        // Which bundle an id stands for may change, so that neither kind is ever inside the other.
        case (.all, _), (.endpoints, _), (.bundles, _): false
        }
    }
}

/// In JSON `"all"`, `{"endpoints": […]}` or `{"bundles": […]}`, sorted.
extension Selector: Codable {
    private enum Keys: String, CodingKey { case endpoints, bundles }

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
        guard container.allKeys.count == 1 else {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "a selector is \"all\", or has either \"endpoints\" or \"bundles\""
                )
            )
        }
        if let ids = try container.decodeIfPresent([EndpointID].self, forKey: .endpoints) {
            self = .endpoints(Set(ids))
        } else {
            self = .bundles(Set(try container.decode([String].self, forKey: .bundles)))
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
        }
    }
}
