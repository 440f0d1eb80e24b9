/// The storage of a team's registry: keys with values, session leases that end without renewal, and changes in order.
///
/// The semantics are those of etcd. The module `Etcd` has the implementation for a team. `InMemoryTeamStore` is the
/// registry of one process, for tests.
///
/// Every call ends within 7 seconds, with `TeamStoreError.unreachable` if no server answered. The calls are
/// linearizable: each sees all writes that returned before it began. A cancelled call throws an error.
package protocol TeamStore: Sendable {
    /// Returns every entry whose key begins with `prefix`, sorted by key, and the revision of the store. All entries
    /// are of that revision.
    ///
    /// - Throws: `TeamStoreError.tooLarge`; a longer prefix may have fewer entries.
    func list(_ prefix: String) async throws(TeamStoreError) -> TeamStoreList

    /// Returns the changes of keys that begin with `prefix`, after a revision, each revision once and in order.
    ///
    /// The stream never ends without an error while it is read. It throws `TeamStoreError.compacted` if the history lacks
    /// a revision; the caller then lists again. It throws `.unreachable` within 10 seconds after the server has stopped to
    /// answer, also over a connection that is only silent.
    func changes(of prefix: String, after revision: Int64) -> AsyncThrowingStream<TeamStoreChanges, any Error>

    /// Makes all writes in one revision, if the condition is true. At most `TeamStoreWrite.limit` writes, each of another
    /// key. After `.unreachable` the writes may have been made, or may still be made.
    ///
    /// A put without a session lease, or with another one than before, detaches the entry from the one before.
    ///
    /// - Returns: False if the condition is false, and nothing was written.
    /// - Throws: `TeamStoreError.sessionLeaseEnded` if the session lease of a put has ended; nothing was written.
    func write(_ writes: [TeamStoreWrite], if condition: TeamStoreCondition?) async throws(TeamStoreError) -> Bool

    /// Creates a session lease. Its entries are deleted when it ends.
    func grantSessionLease(timeToLive: Duration) async throws(TeamStoreError) -> SessionLease.ID

    /// Renews a session lease to its full time.
    ///
    /// - Throws: `TeamStoreError.sessionLeaseEnded` if it has ended.
    func renewSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError)

    /// Ends a lease and deletes its entries. Does nothing if it has ended.
    func revokeSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError)

    /// Uses a renewed certificate for the connections from now on.
    func use(_ connection: TeamRegistryConnection) throws(TeamStoreError)
}

extension TeamStore {
    /// A registry in memory has no connections.
    package func use(_ connection: TeamRegistryConnection) throws(TeamStoreError) {}
}

/// The lease that a team session holds in the store. Entries that were written with it end with it.
package struct SessionLease: Hashable, Sendable {
    /// The number of a session lease in the store.
    package typealias ID = Int64

    package let id: ID
    /// A number that is greater for each later session lease of a host. It is the time of the grant in milliseconds since
    /// 1970, and at least one more than the number before. So it also grows with a restart of the broker.
    package let generation: UInt64
}

package struct TeamStoreEntry: Hashable, Sendable {
    package let key: String
    package let value: [UInt8]
}

package struct TeamStoreList: Hashable, Sendable {
    package let entries: [TeamStoreEntry]
    package let revision: Int64
}

/// The changes of one revision.
package struct TeamStoreChanges: Hashable, Sendable {
    package enum Change: Hashable, Sendable {
        case put(TeamStoreEntry)
        case delete(key: String)
    }

    package let changes: [Change]
    package let revision: Int64
}

package enum TeamStoreWrite: Hashable, Sendable {
    /// Puts a value. With a session lease, the entry ends with it.
    case put(key: String, value: [UInt8], sessionLease: SessionLease.ID?)
    case delete(key: String)
    /// Deletes every key that begins with the prefix.
    case deleteAll(prefix: String)

    /// The maximum number of writes in one step. etcd allows 128 by default.
    package static let limit = 100
}

package enum TeamStoreCondition: Hashable, Sendable {
    case absent(key: String)
    case equals(key: String, value: [UInt8])
}

package enum TeamStoreError: Error, Hashable, Sendable {
    /// No server of the store answered in time, or the servers have no quorum.
    case unreachable(reason: String)
    /// The revision was deleted from the history; list again.
    case compacted
    /// The session lease has ended, and with it its entries.
    case sessionLeaseEnded
    /// The store refused the certificate or the permission of this host.
    case denied(reason: String)
    /// The store has a user with the name of a new host.
    case userExists(name: String)
    /// The store has more entries with a prefix than one answer can have.
    case tooLarge(bytes: Int)
    case failed(reason: String)
}

extension TeamStoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreachable(let reason): "the registry of the team is unreachable: \(reason)"
        case .compacted: "the registry of the team has deleted the history; it is listed again"
        case .sessionLeaseEnded: "the session lease in the registry of the team has ended"
        case .denied(let reason): "the registry of the team refused this host: \(reason)"
        case .userExists(let name):
            "etcd has another user with the name \(name), so no host can have this name; choose another name with --host"
        case .tooLarge(let bytes): "the registry of the team sent \(bytes) bytes at once, which is too much"
        case .failed(let reason): "the registry of the team failed: \(reason)"
        }
    }
}
