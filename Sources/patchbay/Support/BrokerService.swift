import Glibc
import Model
import SystemIO

/// The broker as a service of systemd, with its own socket and configuration file.
enum BrokerService {
    static let configuration = "/etc/patchbay/patchbay.toml"

    /// Returns true if the broker at this socket is the installed service.
    static func isBroker(at socket: String) -> Bool {
        socket == BrokerSocketPath.system && BrokerSocketPath.serviceUnits.contains { access($0, F_OK) == 0 }
    }

    /// The state of the unit, such as `inactive` or `failed`, and its status line. Every user may read both.
    struct State: Equatable {
        let active: String
        let status: String

        /// Parses `STATE STATUS`.
        init(_ text: String) {
            let words = text.split(separator: " ", maxSplits: 1)
            active = words.first.map(String.init) ?? ""
            status = words.count > 1 ? SanitizedText(String(words[1]), limit: .max).text : ""
        }
    }

    /// Returns the state of the unit; nil where systemd does not run.
    static func state() async -> State? {
        guard access("/run/systemd/system", F_OK) == 0 else { return nil }
        let script = "echo \"state $(systemctl is-active patchbayd) $(systemctl show -P StatusText patchbayd)\""
        guard let process = try? ChildProcess("/bin/sh", ["-c", script], announcing: "state ") else { return nil }
        return (try? await process.announcement()).map(State.init)
    }
}
