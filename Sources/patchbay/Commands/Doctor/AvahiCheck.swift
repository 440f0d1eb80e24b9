import FoundationEssentials
import Model

/// Checks D-Bus, avahi-daemon, and Avahi's wide-area lookups.
struct AvahiCheck {
    private static let standardBus = "/run/dbus/system_bus_socket"

    var environment = ProcessInfo.processInfo.environment
    var daemon = "/run/avahi-daemon/socket"
    var configuration = AvahiConfiguration()

    /// True if avahi-daemon listens at its socket.
    var isDaemonRunning: Bool { UnixSocketStatus(path: daemon).state == .listening }

    /// Returns one result for each finding, or one `ok` result.
    func run() -> [Check] {
        var checks: [Check] = []
        switch Self.bus(environment) {
        case nil:
            return [
                Check.ok("dbus", "DBUS_SYSTEM_BUS_ADDRESS is not a Unix socket path; not checked")
            ]
        case let bus? where bus != Self.standardBus:
            // A custom bus has its own Avahi; the status of the broker covers that Avahi.
            if UnixSocketStatus(path: bus).state == .listening {
                return [
                    Check.ok("dbus", "the bus of DBUS_SYSTEM_BUS_ADDRESS is running at \(bus)")
                ]
            }
            let detail = "the bus of DBUS_SYSTEM_BUS_ADDRESS is not running at \(bus)"
            return [Check.warn("dbus", detail, try: "unset DBUS_SYSTEM_BUS_ADDRESS")]
        case let bus?:
            if UnixSocketStatus(path: bus).state != .listening {
                let detail = "the D-Bus system bus is not running at \(bus)"
                checks.append(.warn("dbus", detail, try: "sudo systemctl start dbus"))
            }
        }
        if !isDaemonRunning {
            let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/sbin/avahi-daemon")
            let hint = isInstalled ? "sudo systemctl start avahi-daemon" : "sudo apt install avahi-daemon"
            checks.append(
                .warn("avahi", "avahi-daemon is not running; Bonjour services are not discovered", try: hint)
            )
        }
        if enablesWideArea {
            checks.append(
                .warn(
                    "wide-area",
                    "Avahi sends unicast queries with predictable IDs (CVE-2024-52615, CVE-2024-52616)",
                    try: configuration.command(setting: "enable-wide-area", to: "no", in: "wide-area")
                )
            )
        }
        return checks.isEmpty
            ? [Check.ok("avahi", "D-Bus and avahi-daemon are running; wide-area lookups are off")] : checks
    }

    /// Returns the path of the system bus socket; nil for another kind of address (D-Bus specification, "Server
    /// Addresses").
    static func bus(_ environment: [String: String]) -> String? {
        guard let text = environment["DBUS_SYSTEM_BUS_ADDRESS"], !text.isEmpty else { return standardBus }
        guard let first = text.split(separator: ";").first, first.hasPrefix("unix:") else { return nil }
        let pairs = first.dropFirst(5).split(separator: ",")
        return pairs.first { $0.hasPrefix("path=") }.map { String($0.dropFirst(5)) }
    }

    /// The value of `enable-wide-area` in `[wide-area]`; the default is yes (avahi-daemon.conf(5)). False without a file.
    var enablesWideArea: Bool {
        guard configuration.exists else { return false }
        let value = configuration.value(of: "enable-wide-area", in: "wide-area") ?? "yes"
        return ["yes", "true", "1", "on"].contains(value.lowercased())
    }
}
