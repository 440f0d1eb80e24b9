import FoundationEssentials
import Model

/// Describes the hosts of a team: names, stale entries and routes of other hosts.
enum TeamText {
    private static let unreachable = "the team's registry is unreachable"

    /// Formats a host: `lab2`, or `lab2, as of 3 min ago: the team's registry is unreachable`.
    static func host(_ host: HostStatus, now: Date) -> String {
        age(of: host, now: now).map { "\(host.name), \($0): \(unreachable)" } ?? host.name.text
    }

    /// Formats a host for a column: `lab2`, or `lab2 (as of 3 min ago)`. Returns `-` for no host.
    static func cell(of host: HostStatus?, now: Date) -> Table.Cell {
        guard let host else { return .init("-") }
        guard let age = age(of: host, now: now) else { return .init(host.name.text) }
        return .init("\(host.name) (\(age))", .yellow)
    }

    /// Formats the hosts of a phone for a column: the best one, and the number of others (`lab2 +1`).
    static func cell(of routes: [DeviceRoute], now: Date) -> Table.Cell {
        let best = cell(of: routes.first?.host, now: now)
        let others = Set(routes.map(\.host.name)).count - 1
        return others > 0 ? .init("\(best.text) +\(others)", best.style) : best
    }

    /// Formats the best route of an endpoint of another host and the number of further routes: `lab2: usb +1`. Returns nil
    /// for an endpoint of this broker.
    static func route(of endpoint: Endpoint) -> String? {
        guard endpoint.isOnOtherHost, let host = endpoint.host?.name ?? endpoint.id.host else { return nil }
        guard let best = endpoint.shownRoutes.first else { return "-" }
        let more = endpoint.shownRoutes.count - 1
        return "\(host): \(best.route.isNetwork ? "network" : "usb")\(more > 0 ? " +\(more)" : "")"
    }

    /// A line about the hosts whose entries may be outdated: `lab2: as of 3 min ago: …`. Nil if there are none.
    static func staleNote(on hosts: [HostStatus], now: Date = Date()) -> String? {
        let stale = Set(hosts).filter { $0.staleSince != nil }.sorted { $0.name < $1.name }
        guard let oldest = stale.compactMap(\.staleSince).min() else { return nil }
        let names = stale.map(\.name.text).joined(separator: ", ")
        return "\(names): as of \(Formatting.ago(oldest, now: now)): \(unreachable)."
    }

    /// Formats the hosts that are online: `host lab1; others: lab2, lab3 (as of 3 min ago: …)`.
    static func summary(of own: HostName, _ others: [HostStatus], now: Date) -> String {
        guard !others.isEmpty else { return "host \(own); no other host is online" }
        let names = others.map { host in
            age(of: host, now: now).map { "\(host.name) (\($0): \(unreachable))" } ?? host.name.text
        }
        return "host \(own); others: \(names.joined(separator: ", "))"
    }

    /// Returns one line for each host that was added, removed, or became outdated or current.
    ///
    /// - Parameters:
    ///   - old: The hosts before.
    ///   - new: The hosts now.
    ///   - isFirst: True for the first list, of which only outdated hosts have a line.
    ///   - now: The time for ages.
    /// - Returns: The lines, without a time.
    static func changes(from old: [HostStatus], to new: [HostStatus], isFirst: Bool, now: Date = Date()) -> [String] {
        let before = Dictionary(old.map { ($0.name, $0) }) { $1 }
        var lines = new.compactMap { host -> String? in
            let (was, isStale) = (before[host.name], host.staleSince != nil)
            if isStale, was?.staleSince == nil { return "~ host \(self.host(host, now: now))" }
            if was == nil { return isFirst ? nil : "+ host \(host.name)" }
            return !isStale && was?.staleSince != nil ? "~ host \(host.name), current again" : nil
        }
        let names = Set(new.map(\.name))
        lines += old.filter { !names.contains($0.name) }.map { "- host \($0.name)" }
        return lines
    }

    private static func age(of host: HostStatus, now: Date) -> String? {
        host.staleSince.map { "as of \(Formatting.ago($0, now: now))" }
    }
}
