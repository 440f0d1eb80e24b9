import Model

/// The IDs of endpoints that are no longer listed, each with the identity keys of its app.
///
/// Tunnels and grants refer to endpoints by ID. A retired ID is assigned again only to the same app.
package struct RetiredIDs: Hashable, Sendable, Codable {
    /// The number of retired IDs above which `free` frees the oldest ones.
    static let limit = 4_096

    private var keys: [String: [IdentityKey]] = [:]
    private var order: [String] = []
    /// The IDs from versions whose keys left out a number at the end of a machine name.
    private var withoutNumbers: Set<String> = []

    package init() {}

    mutating func add(_ id: EndpointID, for keys: [IdentityKey]) {
        if self.keys.updateValue(keys, forKey: id.text) == nil { order.append(id.text) }
    }

    /// Adds the ID of an endpoint that made room for a new one. Of all IDs above the limit, it is freed first, so that a
    /// flood of unapproved apps frees no ID of another app.
    mutating func addEvicted(_ id: EndpointID, for keys: [IdentityKey]) {
        if self.keys.updateValue(keys, forKey: id.text) == nil { order.insert(id.text, at: 0) }
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
            withoutNumbers.remove(id)
            return true
        }
    }

    mutating func remove(_ id: EndpointID) {
        guard keys.removeValue(forKey: id.text) != nil else { return }
        order.removeAll { $0 == id.text }
        withoutNumbers.remove(id.text)
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

    /// Returns an ID that an earlier version reserved for an app with one of these keys.
    func earlierID(for keys: [IdentityKey]) -> EndpointID? {
        guard !keys.isEmpty else { return nil }
        return withoutNumbers.sorted().lazy.compactMap { EndpointID($0) }.first { isFree($0, for: keys) }
    }
}

/// Reads the format of earlier versions, which has no `withoutNumbers`.
extension RetiredIDs {
    private enum CodingKeys: String, CodingKey {
        case keys, order, withoutNumbers
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let stored = try container.decode([String: [IdentityKey]].self, forKey: .keys)
        keys = stored.mapValues { $0.map(\.decoded) }
        order = try container.decode([String].self, forKey: .order)
        withoutNumbers =
            try container.decodeIfPresent(Set<String>.self, forKey: .withoutNumbers) ?? Set(stored.keys)
    }
}
