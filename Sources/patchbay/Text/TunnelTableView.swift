import Model

/// The tunnels as `patchbay tunnels` shows them, and the line that `patchbay forward` prints for each.
enum TunnelTableView {
    static func table(of tunnels: [Tunnel]) -> Table {
        var table = Table(columns: [
            .init(title: "ID"), .init(title: "LOCAL"), .init(title: "TARGET", isFlexible: true), .init(title: "STATE"),
            .init(title: "OPEN"), .init(title: "TOTAL"), .init(title: "FAILED"), .init(title: "UP"),
            .init(title: "DOWN"), .init(title: "WHY", isFlexible: true),
        ])
        table.rows = tunnels.map { tunnel in
            let counted = tunnel.statistics
            let failures = counted.failures.values.reduce(0, +)
            return [
                .init(tunnel.id), .init(local(of: tunnel)), .init(Formatting.target(tunnel.spec.target)),
                .init(tunnel.state.name, tunnel.state.style), .init("\(counted.open)"), .init("\(counted.connections)"),
                .init("\(failures)", failures > 0 ? .yellow : .plain),
                .init(amount(counted.bytesUp, counted.rateUp)), .init(amount(counted.bytesDown, counted.rateDown)),
                .init(remarks(on: tunnel).joined(separator: "; ")),
            ]
        }
        return table
    }

    /// `1.5 MB`, and while bytes flow `1.5 MB, 200.0 kB/s`.
    private static func amount(_ bytes: UInt64, _ rate: UInt64?) -> String {
        guard let rate, rate > 0 else { return Formatting.bytes(bytes) }
        return "\(Formatting.bytes(bytes)), \(Formatting.bytes(rate))/s"
    }

    /// `127.0.0.1:43211 -> 00008101-…:9876 (t3)`.
    static func line(_ tunnel: Tunnel) -> String {
        let name = tunnel.replaced.map { "\(tunnel.id), in place of \($0)" } ?? tunnel.id
        let line = "\(local(of: tunnel)) -> \(Formatting.target(tunnel.spec.target)) (\(name))"
        let openness = openness(of: tunnel.spec).map { "\(line) \($0)" } ?? line
        return tunnel.state.reason.map { "\(openness) \(tunnel.state.name): \($0)" } ?? openness
    }

    private static func remarks(on tunnel: Tunnel) -> [String] {
        [tunnel.state.reason, failures(of: tunnel), openness(of: tunnel.spec)].compactMap { $0 }
    }

    /// Which kinds of failure were counted, the most frequent first; nil for none.
    private static func failures(of tunnel: Tunnel) -> String? {
        let kinds = tunnel.statistics.failures.filter { $0.value > 0 }.sorted {
            ($1.value, $0.key) < ($0.value, $1.key)
        }
        return kinds.isEmpty
            ? nil : "failed: " + kinds.map { "\($1) \(Formatting.failure($0))" }.joined(separator: ", ")
    }

    /// Which protections were lifted; nil for none.
    private static func openness(of spec: TunnelSpec) -> String? {
        let who = [spec.allowsAnyUser ? "any user" : nil, spec.allowsBrowsers ? "browsers" : nil].compactMap { $0 }
        return who.isEmpty ? nil : "open to \(who.joined(separator: " and "))"
    }

    /// The address to connect to. IPv4 and IPv6 loopback on one port are one thing to a person.
    private static func local(of tunnel: Tunnel) -> String {
        Formatting.address(tunnel.bound.first ?? tunnel.spec.local)
    }
}

extension Tunnel.State {
    var style: ANSIStyle {
        switch self {
        case .active: .green
        case .waiting: .yellow
        case .failed: .red
        }
    }
}
