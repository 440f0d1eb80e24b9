import FoundationEssentials

/// Whether D-Bus and Avahi are there, and whether Avahi asks the wide world for names.
struct AvahiCheck {
    var bus = "/run/dbus/system_bus_socket"
    var daemon = "/run/avahi-daemon/socket"
    var configuration = "/etc/avahi/avahi-daemon.conf"

    func run() -> [Check] {
        var checks: [Check] = []
        if SocketFile(path: bus).state != .listening {
            checks.append(check(.warn, "the D-Bus system bus does not answer at \(bus)", "systemctl start dbus"))
        }
        if SocketFile(path: daemon).state != .listening {
            let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/sbin/avahi-daemon")
            let remedy = isInstalled ? "systemctl start avahi-daemon" : "apt install avahi-daemon"
            checks.append(check(.warn, "avahi-daemon does not run; nothing is found on the network", remedy))
        }
        if let text = try? String(contentsOf: URL(filePath: configuration), encoding: .utf8), Self.asksWideArea(text) {
            checks.append(
                check(
                    .warn,
                    "Avahi sends unicast queries with predictable ids (CVE-2024-52615, CVE-2024-52616)",
                    "enable-wide-area=no under [wide-area] in \(configuration), then systemctl restart avahi-daemon"
                )
            )
        }
        return checks.isEmpty ? [check(.ok, "D-Bus and avahi-daemon answer; wide-area lookups are off")] : checks
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
