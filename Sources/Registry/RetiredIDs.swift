import Model

/// The IDs of endpoints that are no longer listed, each with the identity keys of its app.
///
/// Tunnels and grants refer to endpoints by ID. A retired ID is assigned again only to the same app.
package struct RetiredIDs: Hashable, Sendable, Codable {
    /// The maximum number of retired IDs. Above it the oldest ones become free again.
    static let limit = 4_096

    private var keys: [String: [IdentityKey]] = [:]
    private var order: [String] = []

    package init() {}

    mutating func add(_ id: EndpointID, for keys: [IdentityKey]) {
        if self.keys.updateValue(keys, forKey: id.text) == nil { order.append(id.text) }
        if order.count > Self.limit { self.keys[order.removeFirst()] = nil }
    }

    mutating func remove(_ id: EndpointID) {
        guard keys.removeValue(forKey: id.text) != nil else { return }
        order.removeAll { $0 == id.text }
    }

    func contains(_ id: EndpointID) -> Bool { keys[id.text] != nil }

    /// Returns true if an app with these keys may have the ID.
    func isFree(_ id: EndpointID, for keys: [IdentityKey]) -> Bool {
        self.keys[id.text].map { !Set($0).isDisjoint(with: keys) } ?? true
    }
}
