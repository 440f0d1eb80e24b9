import Glibc
import Model

/// Checks the local ports that the broker needs: its API, its tunnels, and the range for tunnels without a chosen port.
struct PortCheck {
    /// The port of the API; nil if `api.tcp` is false.
    let apiPort: UInt16?
    /// The process of the broker; nil if the broker does not run.
    let broker: pid_t?
    /// The tunnels whose address could not be bound.
    let failedTunnels: [Tunnel]
    /// True if the broker itself says that its port is taken.
    var isTaken = false
    /// True if the service is installed, for which systemd listens.
    var isService = false
    /// Returns the programs that listen on a port; nil if no socket listens there.
    var readOwners: (UInt16) -> [KernelSockets.Owner]? = { port in
        let sockets = KernelSockets()
        let inodes = sockets.inodes(port: port, in: .tcp)
        return inodes.isEmpty ? nil : sockets.owners(of: inodes)
    }
    /// Returns the content of /proc/sys/net/ipv4/ip_local_port_range (ip(7)).
    var readRange: () -> String? = { KernelSockets.text(of: "/proc/sys/net/ipv4/ip_local_port_range") }

    /// The maximum number of tunnels, each with a port of its own.
    private static let tunnels = 1_024
    /// Linux' default.
    private static let standardRange = "32768 60999"

    func run() -> [Check] { [api].compactMap { $0 } + failedTunnels.map(tunnel) + [range].compactMap { $0 } }

    private var api: Check? {
        guard let apiPort else { return nil }
        guard let owners = readOwners(apiPort) else {
            guard let broker else { return .ok("ports", "port \(apiPort) is free") }
            return .warn(
                "ports",
                "the broker (process \(broker)) does not listen on port \(apiPort)",
                try: "sudo systemctl restart patchbayd"
            )
        }
        // systemd holds the port for the service too (patchbayd-tcp.socket).
        if let other = owners.first(where: { $0.process != broker && $0.name != "systemd" }) {
            let program = other.name == "patchbayd" ? "another patchbayd" : other.name
            // The name of the broker's own report, which this one replaces.
            return .warn(
                BrokerPart.api.rawValue,
                "\(program) (process \(other.process)) uses port \(apiPort); clients with a grant cannot reach the broker there",
                try: "set another api.port in patchbay.toml, or api.tcp = false"
            )
        }
        guard owners.isEmpty || broker != nil else {
            return .ok("ports", "systemd listens on port \(apiPort) for the broker")
        }
        // Only root sees which program of another user has a port.
        if owners.isEmpty, isTaken || broker == nil {
            let holder = isService && !isTaken ? "systemd, or a program of another user," : "a program of another user"
            return .ok("ports", "\(holder) listens on port \(apiPort); run the check with sudo to see which")
        }
        // The broker has one of two addresses, and reports the other one itself.
        return isTaken ? nil : .ok("ports", "the broker listens on port \(apiPort)")
    }

    private func tunnel(_ tunnel: Tunnel) -> Check {
        guard case .tcp(_, let port) = tunnel.spec.local, let owner = readOwners(port)?.first else {
            let reason = if case .failed(let reason) = tunnel.state { reason } else { "the address cannot be used" }
            return .warn(
                "ports",
                "tunnel \(tunnel.id) does not listen at \(Formatting.address(tunnel.spec.local)): \(reason)",
                try: "patchbay tunnels rm \(tunnel.id)"
            )
        }
        return .warn(
            "ports",
            "\(owner.name) (process \(owner.process)) uses port \(port); tunnel \(tunnel.id) waits for it",
            try: "patchbay tunnels rm \(tunnel.id)"
        )
    }

    private var range: Check? {
        let bounds = (readRange() ?? "").split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        guard bounds.count == 2 else { return nil }
        let count = bounds[1] - bounds[0] + 1
        guard count < Self.tunnels else {
            return .ok("ports", "tunnels and connections get ports from \(bounds[0]) to \(bounds[1])")
        }
        return .warn(
            "ports",
            "only \(count) ports, \(bounds[0]) to \(bounds[1]), are left for tunnels and connections",
            try: "sudo sysctl -w net.ipv4.ip_local_port_range=\"\(Self.standardRange)\""
        )
    }
}
