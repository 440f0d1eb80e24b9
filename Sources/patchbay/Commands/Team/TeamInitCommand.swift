import ArgumentParser
import Client
import FoundationEssentials
import Model

struct TeamInitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create a team with its certificate authority on this host, and prepare etcd for it.",
        discussion: """
            If etcd does not answer yet, the authority is created all the same. Start etcd with certificates of \
            `patchbay team certificate`, then run the same command again: it does what is missing.

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
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

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
        let status = try await options.client.team.create(spec)
        // A failure has one next step; that of the status, a restart, comes after it.
        if format.json || status.problem == nil { try TeamStatusText(status).show(format, on: options.output) }
        guard let problem = status.problem else { return }
        throw CLIError.temporary(
            "the team \(spec.team) is created on this host, and its registry is not ready: \(problem)",
            try: status.hint
        )
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

struct TeamJoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Join the team of another host with a string of `patchbay team invite`.",
        discussion: """
            Reads the string from standard input or a hidden prompt, never from an argument. This host creates its own \
            key, which never leaves it. The invite is sent only to the host with the key pin of the string.

            Joining again with the same name renews the certificate of this host.

              patchbay team join -
              patchbay team join - --host lab2
            """
    )

    @Argument(help: ArgumentHelp("Read standard input; the only accepted value.", valueName: "-"))
    var source = "-"
    @Argument(help: .hidden)
    var rest: [String] = []
    @Option(help: ArgumentHelp("Name this host so. Default: team.host, else the machine's name.", valueName: "name"))
    var host: HostName?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let command = "patchbay team join -"
        let words = (source == "-" ? [] : [source]) + rest
        try SecretInput.refuse(arguments: words, what: "a pairing string", command: command)
        let text = try await SecretInput.line("Pairing string (not shown): ", command: command) {
            (try? TeamPairingString($0)) != nil
        }
        guard (try? TeamPairingString(text)) != nil else {
            throw CLIError.usage(
                text.hasPrefix(PairingString.prefix)
                    ? "the string is of patchbay pair, which gives access to one broker"
                    : "the string is not complete, or not a string of patchbay team invite",
                try: "copy the whole line of patchbay team invite, and run \(command)"
            )
        }
        let status = try await options.client.team.join(TeamJoinSpec(pairing: text, host: host))
        try TeamStatusText(status).show(format, on: options.output)
    }
}
