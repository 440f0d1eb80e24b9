import FoundationEssentials
import Model

/// Whether D-Bus and Avahi are there, and whether Avahi asks the wide world for names.
struct AvahiCheck {
    private static let standardBus = "/run/dbus/system_bus_socket"

    var environment = ProcessInfo.processInfo.environment
    var daemon = "/run/avahi-daemon/socket"
    var configuration = "/etc/avahi/avahi-daemon.conf"

    func run() -> [Check] {
        var checks: [Check] = []
        switch Self.bus(environment) {
        case nil:
            return [Check(name: "dbus", verdict: .ok, detail: "DBUS_SYSTEM_BUS_ADDRESS names a bus that is no file")]
        case let bus? where bus != Self.standardBus:
            // Another Avahi than this machine's is behind it; the broker's word on it has to do.
            if UnixSocketStatus(path: bus).state == .listening {
                return [
                    Check(name: "dbus", verdict: .ok, detail: "the bus of DBUS_SYSTEM_BUS_ADDRESS answers at \(bus)")
                ]
            }
            let detail = "the bus of DBUS_SYSTEM_BUS_ADDRESS does not answer at \(bus)"
            return [Check(name: "dbus", verdict: .warn, detail: detail, remedy: "start it, or unset the variable")]
        case let bus?:
            if UnixSocketStatus(path: bus).state != .listening {
                let detail = "the D-Bus system bus does not answer at \(bus)"
                checks.append(Check(name: "dbus", verdict: .warn, detail: detail, remedy: "systemctl start dbus"))
            }
        }
        if UnixSocketStatus(path: daemon).state != .listening {
            let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/sbin/avahi-daemon")
            let remedy = isInstalled ? "systemctl start avahi-daemon" : "apt install avahi-daemon"
            checks.append(check(.warn, "avahi-daemon does not run; nothing is found on the network", remedy))
        }
        if let text = try? String(contentsOf: URL(filePath: configuration), encoding: .utf8), Self.asksWideArea(text) {
            checks.append(
                Check(
                    name: "wide-area",
                    verdict: .warn,
                    detail: "Avahi sends unicast queries with predictable ids (CVE-2024-52615, CVE-2024-52616)",
                    remedy:
                        "enable-wide-area=no under [wide-area] in \(configuration), then systemctl restart avahi-daemon"
                )
            )
        }
        return checks.isEmpty ? [check(.ok, "D-Bus and avahi-daemon answer; wide-area lookups are off")] : checks
    }

    /// The socket of the system bus; nil where it is none in the file system (D-Bus specification, "Server Addresses").
    static func bus(_ environment: [String: String]) -> String? {
        guard let text = environment["DBUS_SYSTEM_BUS_ADDRESS"], !text.isEmpty else { return standardBus }
        guard let first = text.split(separator: ";").first, first.hasPrefix("unix:") else { return nil }
        let pairs = first.dropFirst(5).split(separator: ",")
        return pairs.first { $0.hasPrefix("path=") }.map { String($0.dropFirst(5)) }
    }

    /// avahi-daemon.conf(5): `enable-wide-area` in `[wide-area]` is yes unless it says otherwise.
    static func asksWideArea(_ text: String) -> Bool {
        var section = ""
        var answer = true
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.filter { !$0.isWhitespace }
            if words.hasPrefix("[") { section = words }
            let parts = words.split(separator: "=")
            if section == "[wide-area]", parts.count == 2, parts[0] == "enable-wide-area" {
                answer = ["yes", "true", "1", "on"].contains(parts[1].lowercased())
            }
        }
        return answer
    }

    private func check(_ verdict: Check.Verdict, _ detail: String, _ remedy: String? = nil) -> Check {
        Check(name: "avahi", verdict: verdict, detail: detail, remedy: remedy)
    }
}

/// Which programs answer multicast DNS on this machine: two of them fight over names and queries.
struct MulticastCheck {
    var tables = ["/proc/net/udp", "/proc/net/udp6"]
    private static let port = 5353

    func run() -> [Check] {
        let inodes = tables.flatMap { Self.inodes(port: Self.port, in: Self.text(of: $0) ?? "") }
        if inodes.isEmpty {
            return [check(.warn, "no program answers multicast DNS (UDP \(Self.port))", "systemctl start avahi-daemon")]
        }
        let programs = Set(Self.owners(of: Set(inodes.map { "socket:[\($0)]" }))).sorted()
        switch programs.count {
        case 0: return [check(.ok, "\(Formatting.count(inodes.count, "socket")) of other users on UDP \(Self.port)")]
        case 1: return [check(.ok, "\(programs[0]) alone answers multicast DNS")]
        default:
            let names = programs.joined(separator: ", ")
            return [
                check(
                    .warn,
                    "several programs share UDP \(Self.port): \(names)",
                    "stop all but avahi-daemon; for systemd-resolved set MulticastDNS=no"
                )
            ]
        }
    }

    /// The inodes of the sockets on a local port, from /proc/net/udp (proc(5)): `sl local_address … uid timeout inode`.
    static func inodes(port: Int, in table: String) -> [UInt64] {
        table.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 9, let address = fields[1].split(separator: ":").last else { return nil }
            return Int(address, radix: 16) == port ? UInt64(fields[9]) : nil
        }
    }

    /// The names of the processes that hold these sockets, as far as we may look into them.
    private static func owners(of links: Set<String>) -> [String] {
        let files = FileManager.default
        let processes = (try? files.contentsOfDirectory(atPath: "/proc"))?.filter { Int($0) != nil } ?? []
        return processes.compactMap { process in
            let folder = "/proc/\(process)/fd"
            let descriptors = (try? files.contentsOfDirectory(atPath: folder)) ?? []
            let holds = descriptors.contains { descriptor in
                (try? files.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)")).map(links.contains) ?? false
            }
            guard holds, let name = text(of: "/proc/\(process)/comm") else { return nil }
            return SanitizedText(name.filter { !$0.isNewline }).text
        }
    }

    private static func text(of path: String) -> String? {
        try? String(contentsOf: URL(filePath: path), encoding: .utf8)
    }

    private func check(_ verdict: Check.Verdict, _ detail: String, _ remedy: String? = nil) -> Check {
        Check(name: "mdns", verdict: verdict, detail: detail, remedy: remedy)
    }
}
