/// Hosts connected by a virtual switch, with real multicast DNS between them.
///
/// Host number N in the list has the address 10.99.0.N on its interface `eth0`.
package final class MDNSNetwork: Sendable {
    package let hosts: [AvahiHost]

    package init(_ names: [String], in scratch: ScratchFolder, settings: [String: String] = [:]) async throws {
        let fabric = try await NetworkSwitch(in: scratch)
        hosts = try await withThrowingTaskGroup(of: (Int, AvahiHost).self) { group in
            for (index, name) in names.enumerated() {
                group.addTask {
                    let host = try await AvahiHost(
                        name,
                        interface: "eth0",
                        namespace: try await fabric.connect(index + 1),
                        in: scratch,
                        settings: settings
                    )
                    return (index, host)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    /// Two hosts that are connected.
    package static func pair(_ one: String, _ other: String, in scratch: ScratchFolder) async throws -> (
        AvahiHost, AvahiHost
    ) {
        let network = try await MDNSNetwork([one, other], in: scratch)
        return (network.hosts[0], network.hosts[1])
    }
}
