/// The state of a server of etcd.
package struct EtcdStatus: Hashable, Sendable {
    package let hasLeader: Bool
    /// The alarms of the server, for example that its space is exhausted.
    package let errors: [String]

    /// The reason why the server cannot write; nil if it can.
    var problem: String? {
        guard hasLeader else { return "it has no leader: most servers of the cluster do not answer" }
        return errors.isEmpty ? nil : errors.joined(separator: "; ")
    }
}
