/// The state of a server of etcd.
package struct EtcdStatus: Hashable, Sendable {
    package let hasLeader: Bool
    /// The alarms of the server, for example that its space is exhausted.
    package let errors: [String]
}
