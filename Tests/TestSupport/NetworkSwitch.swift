/// A virtual switch between hosts, each in a network namespace of its own.
///
/// Host number N, from 1 on, has the address 10.99.0.N on its interface `eth0`.
package final class NetworkSwitch: Sendable {
    private let fabric: NetworkNamespace
    private let scratch: ScratchFolder

    package init(in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        fabric = try await NetworkNamespace(in: scratch)
        // Disables snooping, which drops multicast until it has seen group reports.
        try await fabric.run("ip", ["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"])
        try await fabric.run("ip", ["link", "set", "br0", "up"])
    }

    /// Creates a host and connects it.
    package func connect(_ number: Int) async throws -> NetworkNamespace {
        let namespace = try await NetworkNamespace(in: scratch)
        try await fabric.run(
            "ip",
            ["link", "add", "port\(number)", "type", "veth", "peer", "name", "eth0", "netns", "\(namespace.processID)"]
        )
        try await fabric.run("ip", ["link", "set", "port\(number)", "master", "br0", "up"])
        // Disables duplicate address detection, which delays the link-local address by seconds.
        let script = """
            [ ! -e /proc/sys/net/ipv6 ] || echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
            ip addr add \(Self.address(of: number))/24 dev eth0
            ip link set eth0 up
            """
        try await namespace.run("sh", ["-ec", script])
        return namespace
    }

    package static func address(of number: Int) -> String { "10.99.0.\(number)" }

    /// Drops all that the isolated hosts send to each other. The other hosts reach them. No host gets an error.
    package func setIsolated(_ isIsolated: Bool, _ numbers: [Int]) async throws {
        for number in numbers {
            let words = ["link", "set", "port\(number)", "type", "bridge_slave", "isolated", isIsolated ? "on" : "off"]
            try await fabric.run("ip", words)
        }
    }

    /// Drops all that a host sends and that others send to it. No host gets an error, and the interfaces stay up.
    package func setCutOff(_ isCutOff: Bool, _ number: Int) async throws {
        try await fabric.run("ip", ["link", "set", "port\(number)"] + (isCutOff ? ["nomaster"] : ["master", "br0"]))
    }
}
