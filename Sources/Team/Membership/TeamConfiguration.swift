package import Model
package import SystemIO

/// The table `[team]`: the settings of this host for its team. The commands of `patchbay team` create and join teams.
package struct TeamConfiguration: Equatable, Sendable {
    /// The URLs of the etcd servers; empty for those of the membership.
    package var etcd: [String] = []
    /// The path of the authorities of the etcd servers, as PEM; nil for those of the membership.
    package var etcdAuthority: String?
    /// The name of this host; nil selects the name of the machine.
    package var host: HostName?
    /// The address of the team listener.
    package var listen = SocketAddress.ipv4(0, port: standardPort)
    /// The addresses that other hosts dial, as `ADDRESS` or `ADDRESS:PORT`; empty for the addresses of the machine.
    package var addresses: [TeamAddress] = []

    package static let standardPort: UInt16 = 7_284

    /// The port of the team listener.
    package var port: UInt16 { listen.port ?? Self.standardPort }

    package init() {}
}
