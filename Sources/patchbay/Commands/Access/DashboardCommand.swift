import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

struct DashboardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dashboard",
        abstract: "Sign in to the broker's web page.",
        discussion: """
            Prints the address of the page with a one-time code, and opens it where a desktop is. The code works once, \
            within 60 seconds, in a browser of the same user. The session has your rights for 12 hours, and `patchbay \
            grants` lists it.

            For a broker on another machine, forward its port with the printed ssh command first.

              patchbay dashboard
              patchbay dashboard --no-open
              patchbay dashboard --broker ssh://anna@lab
            """
    )

    @Flag(help: "Print the address only.")
    var noOpen = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        if try options.usesGrant { throw Self.needsOwner(client.address) }
        let code = try await client.dashboardCode()
        let output = options.output
        if format.json { return try output.document(code) }
        let machine = Machine(client.address, ProcessInfo.processInfo.environment)
        for line in machine.lines(for: code) { try output.line(line) }
        if !noOpen, machine.opensBrowser { Self.open(code.url) }
    }

    /// The error for a broker that this command reaches with a grant. Only the control socket identifies a user.
    private static func needsOwner(_ address: BrokerAddress) -> CLIError {
        guard case .remote(let host, _, _) = address else {
            return CLIError(
                status: .notPermitted,
                message: "a code for the dashboard is for an owner on the control socket, not for a grant",
                hint: "patchbay dashboard without --broker; or paste the grant's token into the page"
            )
        }
        return CLIError(
            status: .notPermitted,
            message: "a code for the dashboard of \(SanitizedText(host)) is given on that machine only, to its owner",
            hint:
                "patchbay dashboard --broker ssh://USER@\(SanitizedText(host)); or open https://\(address) and paste a token"
        )
    }

    /// Starts the user's browser, without a wait: `xdg-open` may stay until the browser ends.
    private static func open(_ url: String) {
        let script = #"exec xdg-open "$1" </dev/null >/dev/null 2>&1"#
        _ = try? ProgramStarter.start(["sh", "-c", script, "sh", url], ProcessInfo.processInfo.environment)
    }

    /// The machine of the browser, as far as the environment tells it.
    struct Machine {
        private let destination: SSHDestination?
        private let environment: [String: String]

        init(_ address: BrokerAddress, _ environment: [String: String]) {
            destination = if case .ssh(let destination) = address { destination } else { nil }
            self.environment = environment
        }

        /// True if the browser of this user can be opened here.
        var opensBrowser: Bool {
            guard destination == nil, !isOverSSH, environment["SUDO_UID"] == nil else { return false }
            let hasDesktop = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
            return hasDesktop
                && (environment["PATH"] ?? "").split(separator: ":").contains {
                    access("\($0)/xdg-open", X_OK) == 0
                }
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
}
