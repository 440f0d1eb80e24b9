package import FoundationEssentials

/// What one client of the handshake's eras wants to hear of, as it outlives the broker.
package struct PersistedSubscriptions: Codable, Hashable, Sendable {
    /// The session's id, and whose it is: of another holder it is nothing.
    package let session: String
    package let holder: String
    /// Addresses of resources.
    package let addresses: [String]
    /// When the client was last here.
    package let lastUsed: Date

    /// How long a client is waited for that does not come back; how much is kept for how many.
    static let lifetime: TimeInterval = 30 * 24 * 3_600
    static let sessionLimit = 256
    static let addressLimit = 4_096
    /// In bytes of UTF-8, each.
    static let lengthLimit = 1_024

    /// Those that are worth keeping, the last used first.
    static func selection(of all: [PersistedSubscriptions], at now: Date) -> [PersistedSubscriptions] {
        var count = 0
        return all.filter { !$0.addresses.isEmpty && now.timeIntervalSince($0.lastUsed) < lifetime }
            .sorted { $0.lastUsed > $1.lastUsed }
            .prefix(sessionLimit)
            .prefix { kept in
                count += kept.addresses.count
                return count <= addressLimit
            }
    }
}
