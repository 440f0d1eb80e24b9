import ArgumentParser
import Client
import FoundationEssentials
import Model

struct TeamInitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create a team with its certificate authority on this host, and prepare etcd for it.",
        discussion: """
            If etcd does not answer yet, the authority is created all the same, and the command waits. Start etcd with \
            certificates of `patchbay team certificate` in another terminal. The same command may be run again: it does \
            what is missing.

            With --etcd-ca, --etcd-cert and --etcd-key, the team uses an etcd cluster that has its own authority and \
            an administrator. The broker keeps the three files, to add hosts later.

              patchbay team init lab --etcd https://10.0.0.5:2379
            """
    )

    @Argument(help: ArgumentHelp("The name of the team.", valueName: "team"))
    var team: String
    @Option(help: ArgumentHelp("Name this host so. Default: team.host, else the machine's name.", valueName: "name"))
    var host: HostName?
    @Option(help: ArgumentHelp("Use this etcd server; repeat it for a cluster.", valueName: "url"))
    var etcd: [String] = []
    @Option(help: ArgumentHelp("The authority of an existing etcd cluster, as PEM.", valueName: "file"))
    var etcdCa: String?
    @Option(help: ArgumentHelp("The certificate of its administrator, as PEM.", valueName: "file"))
    var etcdCert: String?
    @Option(help: ArgumentHelp("The key of its administrator, as PEM.", valueName: "file"))
    var etcdKey: String?
    @Option(
        name: .customLong("wait"),
        help: ArgumentHelp("Wait this long for etcd, 0s to 24h.", valueName: "time"),
        transform: { try DurationText.parse($0, from: 0, upTo: 86_400, as: "24h") }
    )
    var waitingTime = DurationText(seconds: 600)
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    /// The time between two questions to the servers.
    private static let pause = Duration.seconds(1)

    func validate() throws {
        let files = [etcdCa, etcdCert, etcdKey].compactMap { $0 }
        guard files.isEmpty || files.count == 3 else {
            throw ValidationError("--etcd-ca, --etcd-cert and --etcd-key belong together.")
        }
    }

    func run() async throws {
        let spec = TeamSpec(
            team: SanitizedText(team),
            host: host,
            etcd: etcd.isEmpty ? nil : etcd,
            administrator: try administrator()
        )
        var status = try await options.client.team.create(spec)
        if let problem = status.problem, waitingTime.seconds > 0 {
            let errors = Console.errors()
            try errors.line(
                "The team \(spec.team) is created on this host. Its registry is not ready: \(Console.plain(problem))"
            )
            if let hint = status.hint { try errors.line("try: \(Console.plain(hint))") }
            try errors.line("Waiting up to \(waitingTime) for etcd. After Ctrl-C, the same command completes the team.")
            status = try await complete(spec, status, errors)
        }
        // A failure has one next step; that of the status, a restart, comes after it.
        if format.json || status.problem == nil { try TeamStatusText(status).show(format, on: options.output) }
        guard let problem = status.problem else { return }
        throw CLIError.temporary(
            "the team \(spec.team) is created on this host, and its registry is not ready: \(problem)",
            try: status.hint
        )
    }

    /// Repeats the request as soon as an etcd server answers. Shows each change of the servers.
    ///
    /// The status is asked meanwhile, because each request to create a team is an entry of the audit log.
    private func complete(_ spec: TeamSpec, _ first: TeamStatus, _ errors: Console) async throws -> TeamStatus {
        let client = try options.client.team
        let deadline = ContinuousClock.now + .seconds(waitingTime.seconds)
        var status = first
        // A server that has just started may refuse once more.
        var attemptCount = 3
        var shown = first.etcd
        while status.problem != nil, attemptCount > 0, ContinuousClock.now < deadline {
            try await Task.sleep(for: Self.pause)
            let servers = try await client.status().etcd
            if servers != shown {
                for server in servers {
                    try errors.line("\(Console.plain(server.url)): \(Console.plain(server.problem ?? "answers"))")
                }
                shown = servers
            }
            guard servers.contains(where: { $0.problem == nil }) else { continue }
            status = try await client.create(spec)
            attemptCount -= 1
        }
        return status
    }

    private func administrator() throws(CLIError) -> EtcdAdministratorSpec? {
        guard let etcdCa, let etcdCert, let etcdKey else { return nil }
        return EtcdAdministratorSpec(
            authority: try Self.text(of: etcdCa),
            certificate: try Self.text(of: etcdCert),
            key: try Self.text(of: etcdKey)
        )
    }

    private static func text(of path: String) throws(CLIError) -> String {
        do { return try String(contentsOfFile: path, encoding: .utf8) } catch {
            throw CLIError.notFound(
                "\(SanitizedText(path, limit: .max)) cannot be read",
                try: "name a file as PEM that you may read"
            )
        }
    }
}
