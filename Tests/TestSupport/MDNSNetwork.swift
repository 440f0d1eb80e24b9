/// Hosts connected by a virtual switch, with real multicast DNS between them.
///
/// Host number N in the list has the address 10.99.0.N on its interface `eth0`.
package final class MDNSNetwork: Sendable {
    package let hosts: [AvahiHost]

    package init(_ names: [String], in scratch: ScratchFolder, settings: [String: String] = [:]) async throws {
        let fabric = try await NetworkNamespace(in: scratch)
        // Disables snooping, which drops multicast until it has seen group reports.
        try await fabric.run("ip", ["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"])
        try await fabric.run("ip", ["link", "set", "br0", "up"])
        hosts = try await withThrowingTaskGroup(of: (Int, AvahiHost).self) { group in
            for (index, name) in names.enumerated() {
                group.addTask {
                    let namespace = try await Self.plug(host: index + 1, into: fabric, in: scratch)
                    let host = try await AvahiHost(
                        name,
                        interface: "eth0",
                        namespace: namespace,
                        in: scratch,
                        settings: settings
                    )
                    return (index, host)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private static func plug(
        host: Int,
        into fabric: NetworkNamespace,
        in scratch: ScratchFolder
    ) async throws -> NetworkNamespace {
        let namespace = try await NetworkNamespace(in: scratch)
        try await fabric.run(
            "ip",
            [
                "link", "add", "port\(host)", "type", "veth", "peer", "name", "eth0", "netns", "\(namespace.processID)",
            ]
        )
        try await fabric.run("ip", ["link", "set", "port\(host)", "master", "br0", "up"])
        // Disables duplicate address detection, which delays the link-local address by seconds.
        let script = """
            [ ! -e /proc/sys/net/ipv6 ] || echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
            ip addr add 10.99.0.\(host)/24 dev eth0
            ip link set eth0 up
            """
        try await namespace.run("sh", ["-ec", script])
        return namespace
    }
}
