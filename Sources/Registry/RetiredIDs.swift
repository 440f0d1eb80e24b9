import Model

/// The ids of endpoints that are no longer listed, each with the keys of the app that had it.
///
/// Tunnels and grants name endpoints by id. A retired id goes to the same app again and to no other one.
package struct RetiredIDs: Hashable, Sendable, Codable {
    /// The oldest ids above this number are free again.
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

    /// Whether an app with these keys may have the id.
    func isFree(_ id: EndpointID, for keys: [IdentityKey]) -> Bool {
        self.keys[id.text].map { !Set($0).isDisjoint(with: keys) } ?? true
    }
}
