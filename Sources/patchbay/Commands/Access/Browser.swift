import Client
import FoundationEssentials
import Glibc
import Model

/// The user's browser: on this machine, or behind ssh, as far as the environment tells.
struct Browser {
    private let destination: SSHDestination?
    private let environment: [String: String]

    init(_ address: BrokerAddress, _ environment: [String: String]) {
        destination = if case .ssh(let destination) = address { destination } else { nil }
        self.environment = environment
    }

    /// True if a browser of this user can be opened here.
    var isHere: Bool {
        guard destination == nil, !isOverSSH, environment["SUDO_UID"] == nil else { return false }
        let hasDesktop = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
        return hasDesktop
            && (environment["PATH"] ?? "").split(separator: ":").contains {
                access("\($0)/xdg-open", X_OK) == 0
            }
    }

    /// Opens a URL if the browser is here, without a wait: `xdg-open` may stay until the browser ends.
    func open(_ url: String) {
        guard isHere else { return }
        let script = #"exec xdg-open "$1" </dev/null >/dev/null 2>&1"#
        _ = try? ProgramStarter.start(["sh", "-c", script, "sh", url], ProcessInfo.processInfo.environment)
    }

    /// Returns the address and the steps to use it.
    func lines(for code: DashboardCode) -> [String] {
        let port = code.url.drop { $0 != "/" }.dropFirst(2).split(separator: "/").first?.split(separator: ":").last
        let forward = "-L \(port ?? "7282"):127.0.0.1:\(port ?? "7282")"
        var lines = [code.url, ""]
        if let destination {
            lines.append(
                "First forward the port, in another terminal: ssh \(forward) \(Self.words(of: destination))"
            )
            lines.append("The port must be free on this machine.")
        } else if isOverSSH {
            lines.append("On the machine of your browser, first forward the port: ssh \(forward) \(account)")
        }
        if let uid = environment["SUDO_UID"] {
            lines.append(
                "The code is for root, because of sudo. A browser of user \(SanitizedText(uid)) cannot use it: run it without sudo."
            )
        }
        lines.append("Open the address in a browser of this user. The code works once, within 60 seconds.")
        return lines
    }

    private var isOverSSH: Bool { environment["SSH_CONNECTION"]?.isEmpty == false }

    /// This account for ssh: the user, and the address at which ssh reached this machine.
    private var account: String {
        // SSH_CONNECTION has the client's address and port, then this machine's (ssh(1)).
        let parts = (environment["SSH_CONNECTION"] ?? "").split(separator: " ")
        let host = parts.count == 4 ? SanitizedText(parts[2]).text : "HOST"
        return (environment["USER"].map { SanitizedText($0).text + "@" } ?? "") + host
    }

    private static func words(of destination: SSHDestination) -> String {
        (destination.port.map { "-p \($0) " } ?? "") + (destination.user.map { "\($0)@" } ?? "") + destination.host
    }
}
