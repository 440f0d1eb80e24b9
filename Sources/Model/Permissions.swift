/// What somebody may do, and with which endpoints.
package struct Permissions: Hashable, Sendable {
    package let scopes: Set<Scope>
    package let selector: Selector

    package init(_ scopes: Set<Scope>, on selector: Selector) {
        self.scopes = scopes
        self.selector = selector
    }

    package func isSubset(of other: Permissions) -> Bool {
        scopes.isSubset(of: other.scopes) && selector.isSubset(of: other.selector)
    }

    /// Whether the scope is given at all; for what is not about one endpoint.
    package func allow(_ scope: Scope) -> Bool { scopes.contains(scope) }

    package func allow(_ scope: Scope, on endpoint: Endpoint) -> Bool {
        scopes.contains(scope) && selector.includes(endpoint)
    }
}

/// Scopes are written sorted, so that equal permissions are equal bytes.
extension Permissions: Codable {
    private enum Keys: String, CodingKey { case scopes, selector }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        scopes = Set(try container.decode([Scope].self, forKey: .scopes))
        selector = try container.decode(Selector.self, forKey: .selector)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(scopes.sorted(), forKey: .scopes)
        try container.encode(selector, forKey: .selector)
    }
}
