/// The state of a server of etcd.
package struct EtcdStatus: Hashable, Sendable {
    package let version: String
    /// The size of the database file in bytes.
    package let databaseSize: Int64
    package let hasLeader: Bool
    /// The alarms of the server, for example that its space is exhausted.
    package let errors: [String]
}

/// A server of a cluster of etcd.
package struct EtcdClusterMember: Hashable, Sendable {
    package let name: String
    /// The URLs for clients.
    package let endpoints: [String]
}
