import Model

/// The IDs of endpoints that are no longer listed, each with the identity keys of its app.
///
/// Tunnels and grants refer to endpoints by ID. A retired ID is assigned again only to the same app.
package struct RetiredIDs: Hashable, Sendable, Codable {
    /// The number of retired IDs above which `free` frees the oldest ones.
    static let limit = 4_096

    private var keys: [String: [IdentityKey]] = [:]
    private var order: [String] = []

    package init() {}

    mutating func add(_ id: EndpointID, for keys: [IdentityKey]) {
        if self.keys.updateValue(keys, forKey: id.text) == nil { order.append(id.text) }
    }

    /// True if there are more than `limit` IDs.
    var isOverLimit: Bool { order.count > Self.limit }

    /// Frees the oldest IDs above the limit, so that any app may have them.
    ///
    /// - Parameter named: The IDs that are never freed. Another app with such an ID would inherit tunnels or grants.
    mutating func free(except named: Set<EndpointID>) {
        let kept = Set(named.map(\.text))
        var excess = order.count - Self.limit
        order.removeAll { id in
            guard excess > 0, !kept.contains(id) else { return false }
            excess -= 1
            keys[id] = nil
            return true
        }
    }

    mutating func remove(_ id: EndpointID) {
        guard keys.removeValue(forKey: id.text) != nil else { return }
        order.removeAll { $0 == id.text }
    }

    /// The identity keys of all apps with a retired ID.
    var allKeys: some Sequence<IdentityKey> { keys.values.joined() }

    /// The retired IDs.
    var texts: some Collection<String> { keys.keys }

    func contains(_ id: EndpointID) -> Bool { keys[id.text] != nil }

    /// Returns true if an app with these keys may have the ID.
    func isFree(_ id: EndpointID, for keys: [IdentityKey]) -> Bool {
        self.keys[id.text].map { !Set($0).isDisjoint(with: keys) } ?? true
    }
}
