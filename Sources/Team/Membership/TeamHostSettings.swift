package import Discovery
import FoundationEssentials
import Glibc
import Model
import SystemIO
import Transport

/// The settings of this host that do not change while the broker runs.
package struct TeamHostSettings: Sendable {
    let configuration: TeamConfiguration
    /// The name of the machine.
    let machine: String
    /// The interfaces whose addresses other hosts may dial.
    let interfaces: InterfaceFilter

    package init(
        configuration: TeamConfiguration,
        machine: String = Self.nameOfMachine,
        interfaces: InterfaceFilter
    ) {
        self.configuration = configuration
        self.machine = machine
        self.interfaces = interfaces
    }

    package static var nameOfMachine: String {
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The name of this host: that of the command, of the configuration, or of the machine.
    func hostName(_ wanted: HostName?) throws -> HostName {
        if let name = wanted ?? configuration.host { return try checked(name) }
        let machine = machine.prefix { $0 != "." }.lowercased().replacing("_", with: "-")
        guard let name = HostName(machine) else {
            throw Problem(
                .badRequest,
                "the name of this machine, \"\(SanitizedText(machine))\", cannot be the name of a host",
                hint: "choose one: --host NAME, with a-z, 0-9 and hyphens"
            )
        }
        return try checked(name)
    }

    private func checked(_ name: HostName) throws -> HostName {
        guard name.text != CertificateAuthority.etcdRootUser else {
            throw Problem(
                .badRequest,
                "\(name) is the name of etcd's administrator",
                hint: "choose another name of this host: --host NAME"
            )
        }
        return name
    }

    /// The addresses that other hosts dial, as `ADDRESS:PORT`, the best one first.
    func addresses() -> [String] {
        let port = configuration.port
        if !configuration.addresses.isEmpty {
            return configuration.addresses.map { $0.description(defaultPort: port) }
        }
        let hosts =
            configuration.listen.isUnspecified
            ? MachineAddresses.reachable(on: interfaces) : [configuration.listen.host]
        return hosts.map { TeamAddress(host: $0, port: port).description }
    }

    /// The reason why a numeric address cannot be that of another host; nil if it can be.
    ///
    /// The rule is that for the senders of registrations. In addition, a host that publishes a loopback address itself
    /// belongs to a team on one machine.
    @Sendable func refusal(ofMemberAt address: String) -> String? {
        guard MachineAddresses.refusal(ofSender: address) != nil else { return nil }
        let isOnOneMachine =
            SocketAddress(numeric: address, port: 0)?.isLoopback == true
            && addresses().contains { text in
                TeamAddress(text).flatMap { SocketAddress(numeric: $0.host, port: 0) }?.isLoopback == true
            }
        return isOnOneMachine
            ? nil : "another host cannot have this address of this machine, of many machines, or of a cloud provider"
    }
}
