import FoundationEssentials

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
