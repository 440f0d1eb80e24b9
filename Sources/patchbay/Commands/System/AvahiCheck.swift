import FoundationEssentials
import Model

/// Checks D-Bus, avahi-daemon, and Avahi's wide-area lookups.
struct AvahiCheck {
    private static let standardBus = "/run/dbus/system_bus_socket"

    var environment = ProcessInfo.processInfo.environment
    var daemon = "/run/avahi-daemon/socket"
    var configuration = "/etc/avahi/avahi-daemon.conf"

    /// Returns one result for each finding, or one `ok` result.
    func run() -> [Check] {
        var checks: [Check] = []
        switch Self.bus(environment) {
        case nil:
            return [
                Check(
                    name: "dbus",
                    verdict: .ok,
                    detail: "DBUS_SYSTEM_BUS_ADDRESS is not a Unix socket path; not checked"
                )
            ]
        case let bus? where bus != Self.standardBus:
            // A custom bus has its own Avahi; the status of the broker covers that Avahi.
            if UnixSocketStatus(path: bus).state == .listening {
                return [
                    Check(name: "dbus", verdict: .ok, detail: "the bus of DBUS_SYSTEM_BUS_ADDRESS is running at \(bus)")
                ]
            }
            let detail = "the bus of DBUS_SYSTEM_BUS_ADDRESS is not running at \(bus)"
            return [Check(name: "dbus", verdict: .warn, detail: detail, hint: "start the bus, or unset the variable")]
        case let bus?:
            if UnixSocketStatus(path: bus).state != .listening {
                let detail = "the D-Bus system bus is not running at \(bus)"
                checks.append(Check(name: "dbus", verdict: .warn, detail: detail, hint: "systemctl start dbus"))
            }
        }
        if UnixSocketStatus(path: daemon).state != .listening {
            let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/sbin/avahi-daemon")
            let hint = isInstalled ? "systemctl start avahi-daemon" : "apt install avahi-daemon"
            checks.append(check(.warn, "avahi-daemon is not running; Bonjour services are not discovered", hint: hint))
        }
        if let text = try? String(contentsOf: URL(filePath: configuration), encoding: .utf8), Self.enablesWideArea(text)
        {
            checks.append(
                Check(
                    name: "wide-area",
                    verdict: .warn,
                    detail: "Avahi sends unicast queries with predictable IDs (CVE-2024-52615, CVE-2024-52616)",
                    hint:
                        "set enable-wide-area=no in [wide-area] of \(configuration); systemctl restart avahi-daemon"
                )
            )
        }
        return checks.isEmpty ? [check(.ok, "D-Bus and avahi-daemon are running; wide-area lookups are off")] : checks
    }

    /// Returns the path of the system bus socket; nil for another kind of address (D-Bus specification, "Server
    /// Addresses").
    static func bus(_ environment: [String: String]) -> String? {
        guard let text = environment["DBUS_SYSTEM_BUS_ADDRESS"], !text.isEmpty else { return standardBus }
        guard let first = text.split(separator: ";").first, first.hasPrefix("unix:") else { return nil }
        let pairs = first.dropFirst(5).split(separator: ",")
        return pairs.first { $0.hasPrefix("path=") }.map { String($0.dropFirst(5)) }
    }

    /// Returns the value of `enable-wide-area` in `[wide-area]`; the default is yes (avahi-daemon.conf(5)).
    static func enablesWideArea(_ text: String) -> Bool {
        var section = ""
        var isEnabled = true
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.filter { !$0.isWhitespace }
            if words.hasPrefix("[") { section = words }
            let parts = words.split(separator: "=")
            if section == "[wide-area]", parts.count == 2, parts[0] == "enable-wide-area" {
                isEnabled = ["yes", "true", "1", "on"].contains(parts[1].lowercased())
            }
        }
        return isEnabled
    }

    private func check(_ verdict: Check.Verdict, _ detail: String, hint: String? = nil) -> Check {
        Check(name: "avahi", verdict: verdict, detail: detail, hint: hint)
    }
}

/// Checks which programs use multicast DNS on this machine. Two mDNS responders conflict about names and queries.
struct MulticastCheck {
    var tables = ["/proc/net/udp", "/proc/net/udp6"]
    private static let port = 5353

    func run() -> [Check] {
        let inodes = tables.flatMap { Self.inodes(port: Self.port, in: Self.text(of: $0) ?? "") }
        if inodes.isEmpty {
            return [
                check(.warn, "no mDNS responder is running (UDP \(Self.port))", hint: "systemctl start avahi-daemon")
            ]
        }
        let programs = Set(Self.owners(of: Set(inodes.map { "socket:[\($0)]" }))).sorted()
        switch programs.count {
        case 0: return [check(.ok, "\(Formatting.count(inodes.count, "socket")) of other users on UDP \(Self.port)")]
        case 1: return [check(.ok, "\(programs[0]) is the only mDNS responder")]
        default:
            let names = programs.joined(separator: ", ")
            return [
                check(
                    .warn,
                    "several programs use UDP \(Self.port): \(names)",
                    hint: "stop all except avahi-daemon; for systemd-resolved set MulticastDNS=no"
                )
            ]
        }
    }

    /// Parses /proc/net/udp (proc(5)) for the socket inodes of a local port: `sl local_address … uid timeout inode`.
    static func inodes(port: Int, in table: String) -> [UInt64] {
        table.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 9, let address = fields[1].split(separator: ":").last else { return nil }
            return Int(address, radix: 16) == port ? UInt64(fields[9]) : nil
        }
    }

    /// Returns the names of the processes with these sockets. Processes of other users may not be readable.
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

    private func check(_ verdict: Check.Verdict, _ detail: String, hint: String? = nil) -> Check {
        Check(name: "mdns", verdict: verdict, detail: detail, hint: hint)
    }
}
