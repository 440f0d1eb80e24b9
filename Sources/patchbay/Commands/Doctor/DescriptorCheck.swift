import Glibc
import Tunnels

/// Checks that the limits of open files suffice for the configured connections of the broker, of usbmuxd and of the adb server.
struct DescriptorCheck {
    /// The process of the broker.
    let broker: pid_t
    /// `tunnels.max_connections`
    let connections: Int
    /// `devices.max_streams`
    let streams: Int
    var sockets = KernelSockets()

    func run() -> [Check] {
        var checks = [
            check("patchbayd", broker, needed: FileDescriptorBudget.needed(for: connections)) { wanted in
                Self.command(wanted, isService: isService(broker), process: broker)
            }
        ]
        // usbmuxd terminates when it runs out of descriptors, and an adb server hangs. Each needs some for itself and for
        // other programs.
        let servers = [("usbmuxd", sockets.processes(named: "usbmuxd").first), ("the adb server", adbServer)]
        for case (let name, let process?) in servers {
            checks.append(
                check(name, process, needed: streams + FileDescriptorBudget.reserve) { wanted in
                    "sudo prlimit --pid \(process) --nofile=\(wanted):\(wanted)"
                }
            )
        }
        return checks.compactMap { $0 }
    }

    /// The adb server of this machine. Its clients have the same name, but not the argument `server`.
    private var adbServer: pid_t? {
        sockets.processes(named: "adb").first { process in
            let words = KernelSockets.text(of: "\(sockets.proc)/\(process)/cmdline")?.split(separator: "\0")
            return words?.contains("server") == true
        }
    }

    private func check(_ name: String, _ process: pid_t, needed: Int, command: (Int) -> String) -> Check? {
        let path = "\(sockets.proc)/\(process)/limits"
        guard let limit = KernelSockets.text(of: path).flatMap(Self.softLimit) else { return nil }
        guard limit < needed else {
            return .ok("files", "\(name) may open \(limit) files and needs \(needed)")
        }
        return .warn(
            "files",
            "\(name) may open \(limit) files, but its configuration needs \(needed)",
            try: command(max(needed, 65_536))
        )
    }

    /// Returns the command that raises the limit. The broker reads its limit when it starts.
    private static func command(_ limit: Int, isService: Bool, process: pid_t) -> String {
        // The broker starts with the limit of its shell.
        guard isService else { return "sudo prlimit --pid $$ --nofile=\(limit) && kill \(process) && patchbayd" }
        let folder = "/etc/systemd/system/patchbayd.service.d"
        return "sudo sh -c 'mkdir -p \(folder) && printf \"[Service]\\nLimitNOFILE=\(limit)\\n\" "
            + ">\(folder)/files.conf && systemctl daemon-reload && systemctl restart patchbayd'"
    }

    /// Parses /proc/PID/limits (proc(5)) for the soft limit of open files; nil without such a line.
    static func softLimit(in table: String) -> Int? {
        let line = table.split(separator: "\n").first { $0.hasPrefix("Max open files") }
        let word = line?.dropFirst("Max open files".count).split(separator: " ").first
        return word == "unlimited" ? .max : word.flatMap { Int($0) }
    }

    private func isService(_ process: pid_t) -> Bool {
        KernelSockets.text(of: "\(sockets.proc)/\(process)/cgroup")?.contains("patchbayd.service") == true
    }
}
