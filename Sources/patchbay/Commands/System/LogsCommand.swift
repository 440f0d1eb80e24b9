import ArgumentParser
import FoundationEssentials
import Glibc
import Model

struct LogsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Show the log of the broker's service.",
        discussion: """
            Runs journalctl for the system's service, or for your own service if yours is the broker in use. A broker \
            in a terminal logs to that terminal. For the log of an app or a phone, see patchbay log.

              patchbay logs -f
              patchbay logs -p warning --since 10m
            """
    )

    @Flag(name: [.short, .long], help: "Show new lines as they are logged.")
    var follow = false
    @Option(
        name: [.short, .long],
        help: ArgumentHelp(
            "Show lines of this priority and above: debug, info, notice, warning, err, crit.",
            valueName: "level"
        )
    )
    var priority: String?
    @Option(
        help: ArgumentHelp("Show the lines of this time until now: 90s, 10m, up to 30d.", valueName: "time"),
        transform: { try DurationText.parse($0, upTo: 30 * 86_400, as: "30d") }
    )
    var since: DurationText?
    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("Show this number of lines. Default: 100.", valueName: "count")
    )
    var lines = 100
    @OptionGroup var options: GlobalOptions

    /// The names of journalctl and of `broker.log_level`.
    private static let priorities = [
        "debug": "debug", "info": "info", "notice": "notice", "warning": "warning", "err": "err", "error": "err",
        "crit": "crit", "critical": "crit",
    ]
    static let journal = "/run/systemd/journal/socket"

    func validate() throws {
        if let priority, Self.priorities[priority] == nil {
            throw ValidationError("--priority must be debug, info, notice, warning, err or crit.")
        }
        if lines < 1 { throw ValidationError("--lines must be at least 1.") }
    }

    func run() throws {
        if options.broker != nil {
            throw CLIError.usage(
                "the log of a broker on another machine is on that machine",
                try: "patchbay logs there"
            )
        }
        guard access(Self.journal, F_OK) == 0 else {
            throw CLIError.notFound(
                "this machine has no journal, because systemd does not run",
                try: "read the standard error of patchbayd where you started it"
            )
        }
        let isSystem = GlobalOptions.path(of: options.socket) == BrokerSocketPath.system
        if isSystem, let folders = Self.closedJournal() {
            throw CLIError.notPermitted(
                "the journal of the service in \(folders) is readable for root and the group adm only",
                try: "sudo patchbay logs, or sudo usermod -aG adm \"$USER\" and log in again"
            )
        }
        try ProgramStarter.replaceProcess(by: ["journalctl"] + arguments(isSystem: isSystem))
    }

    /// Returns the folder of a journal of the system that this user cannot read; nil if one is readable, or none exists.
    ///
    /// journalctl shows such a user no entry and no error.
    static func closedJournal(in roots: [String] = ["/var/log/journal", "/run/log/journal"]) -> String? {
        let folders = roots.flatMap { root in
            ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).map { "\(root)/\($0)" }
        }
        let journals = folders.filter { access("\($0)/system.journal", F_OK) == 0 || errno == EACCES }
        return journals.contains { access("\($0)/system.journal", R_OK) == 0 } ? nil : journals.first
    }

    /// Returns the arguments of journalctl.
    func arguments(isSystem: Bool) -> [String] {
        var arguments = isSystem ? ["--unit", "patchbayd.service"] : ["--user-unit", "patchbayd.service"]
        arguments += ["--lines", since == nil ? "\(lines)" : "all"]
        if follow { arguments.append("--follow") }
        if let priority, let name = Self.priorities[priority] { arguments += ["--priority", name] }
        if let since { arguments += ["--since", "-\(since.seconds)s"] }
        return arguments
    }
}
