import Team
import Model
import SystemIO
import TOML

/// The table `[team]`: the settings of this host for its team. The commands of `patchbay team` create and join teams.
struct TeamConfiguration: Equatable, Sendable {
    /// The URLs of the etcd servers; empty for those of the membership.
    var etcd: [String] = []
    /// The path of the authorities of the etcd servers, as PEM; nil for those of the membership.
    var etcdAuthority: String?
    /// The name of this host; nil selects the name of the machine.
    var host: HostName?
    /// The address of the team listener.
    var listen = SocketAddress.ipv4(0, port: standardPort)
    /// The addresses that other hosts dial, as `ADDRESS` or `ADDRESS:PORT`; empty for the addresses of the machine.
    var addresses: [TeamAddress] = []

    static let standardPort: UInt16 = 7_284

    /// The port of the team listener.
    var port: UInt16 { listen.port ?? Self.standardPort }

    /// Reads the table. A key with an error keeps its default.
    ///
    /// - Parameters:
    ///   - table: The table `[team]`.
    ///   - errors: Gets each error, with its position and the valid form.
    mutating func read(_ table: TOMLTable, _ errors: inout TOMLErrorCollector) {
        errors.attempt { () throws(TOMLError) in
            etcd = try table.list("etcd", of: "the URL of an etcd server, such as \"https://10.0.0.5:2379\"") { json in
                json.string.flatMap { EtcdEndpoint($0) == nil ? nil : $0 }
            }
        }
        errors.attempt { () throws(TOMLError) in
            etcdAuthority = try table.optional("etcd_ca", "an absolute path in quotes") { json in
                json.string.flatMap { $0.hasPrefix("/") && !$0.utf8.contains(0) ? $0 : nil }
            }
        }
        errors.attempt { () throws(TOMLError) in
            host = try table.optional("host", "a host name of 1 to 32 letters a-z, digits and hyphens") { json in
                json.string.flatMap { HostName($0) }
            }
        }
        errors.attempt { () throws(TOMLError) in
            let address = "a numeric address with a port, such as \"0.0.0.0:7284\" or \"[::]:7284\""
            listen =
                try table.optional("listen", address) { $0.string.flatMap(SocketAddress.init(withPort:)) } ?? listen
        }
        errors.attempt { () throws(TOMLError) in
            addresses = try table.list(
                "addresses",
                of: "a host name or an address, such as \"10.0.0.7\", \"lab2.example.com:7284\" or \"[fd00::7]:7284\""
            ) { json in json.string.flatMap { TeamAddress($0) } }
        }
    }
}
