import ArgumentParser
import Client
import FoundationEssentials
import Model

struct LeaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lease",
        abstract: "Use an endpoint and its phone alone for a while.",
        discussion: """
            Meanwhile the broker refuses the calls of other clients that may change the app, and their new \
            connections. Read-only calls pass. A call of yours extends the lease. Your commands are one client; each \
            agent is another one. `patchbay unlease` ends the lease.

            With a command after --, the lease lasts until the end of that command. A lease that you have already is \
            kept, and does not end with the command. `patchbay` in the command uses the same broker.

              patchbay lease shop-test-iphone --for 30m --note "unlocking it by hand"
              patchbay lease shop-test-iphone --wait 5m -- ./run-tests.sh
            """
    )

    @Argument(
        help: ArgumentHelp("Lease this endpoint, by ID, name, app or phone UDID.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("End after this time without a call, up to 8h. Default: 10m.", valueName: "time"),
        transform: { try DurationText.parse($0, upTo: LeaseSpec.maxSeconds, as: "8h") }
    )
    var length: DurationText?
    @Option(
        help: ArgumentHelp("Wait up to 1h while another client has the lease.", valueName: "time"),
        transform: { try DurationText.parse($0, upTo: LeaseSpec.maxWaitSeconds, as: "1h") }
    )
    var wait: DurationText?
    @Option(help: ArgumentHelp("Tell other clients the reason.", valueName: "text"))
    var note: String?
    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("Run this command, and end the lease after it.", valueName: "command")
    )
    var command: [String] = []
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    /// Throws if no command follows the two hyphens. The parser ignores such hyphens.
    static func refuseEmptyCommand(_ arguments: [String], of command: String) throws(CLIError) {
        guard command == "patchbay lease", arguments.firstIndex(of: "--") == arguments.count - 1 else { return }
        throw .usage("no command follows --", try: "patchbay lease ID -- COMMAND")
    }

    func run() async throws {
        let client = try options.client
        let endpoint = try await EndpointSelector(text: selector, command: "patchbay lease").choose(client)
        let spec = LeaseSpec(
            endpoint: endpoint.id,
            seconds: length?.seconds,
            waitSeconds: wait?.seconds,
            note: note.map { SanitizedText($0) }
        )
        let held = try await client.leases.lease(of: endpoint)
        if let wait, let held, !held.isOwn, !format.json {
            try Console.errors().line(LeaseTableView.waiting(for: held, upTo: wait))
        }
        guard command.isEmpty else {
            let environment = options.environment(from: ProcessInfo.processInfo.environment)
            return try await LeasedProgram(
                command,
                environment: environment,
                spec: spec,
                held: held.flatMap { $0.isOwn ? $0 : nil },
                client: client
            ).run()
        }
        let lease = try await client.leases.take(spec)
        if format.json { return try options.output.document(lease) }
        try options.output.line(
            "Leased \(LeaseTableView.target(of: lease)) until \(LeaseTableView.end(of: lease)). "
                + options.hint.completed("End it with `patchbay unlease \(lease.endpoint)`.")
        )
    }
}

struct LeasesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leases",
        abstract: "List the leases with their holders and ends.",
        discussion: """
            WAITING counts the clients that wait for the lease. While an agent holds a lease that others wait for, its \
            calls do not extend the lease.

              patchbay leases
              patchbay leases --json | jq -r '.leases[].holder'
            """
    )

    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let leases = try await options.client.leases.list()
        try format.show(
            leases,
            id: \.id,
            table: LeaseTableView.table(of: leases),
            ifEmpty: "No leases. Take one with `patchbay lease ENDPOINT`.",
            on: options
        )
    }
}

struct UnleaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlease",
        abstract: "End the lease of an endpoint.",
        discussion: """
            An owner ends the lease of any client; the audit log records that. A call that runs is not aborted, and \
            the next client gets the lease after it.

              patchbay unlease shop-test-iphone
              patchbay unlease l7
            """
    )

    @Argument(
        help: ArgumentHelp("End the lease of this endpoint, or with this ID.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let leases = try await client.leases.list()
        let lease: Lease
        if let named = leases.first(where: { $0.id == selector }) {
            lease = named
        } else {
            let endpoint: Endpoint
            do {
                endpoint = try await EndpointSelector(text: selector, command: "patchbay unlease").choose(client)
            } catch let error as CLIError where error.status == .notFound {
                if try await giveUp(client) { return }
                throw Self.noLease(of: selector, among: leases.map(\.id))
            }
            guard let found = try await client.leases.lease(of: endpoint) else {
                return try options.output.line("\(endpoint.id) is not leased.")
            }
            lease = found
        }
        try await client.leases.end(lease.id)
        let holder = lease.isOwn ? "" : " of \(lease.holder)"
        try options.output.line("Ended the lease\(holder) on \(LeaseTableView.target(of: lease)).")
    }

    /// Gives up a lease that has ended without its holder, whose calls are refused until then.
    ///
    /// - Returns: False if the text is not the ID of such a lease.
    private func giveUp(_ client: PatchbayClient) async throws -> Bool {
        guard Lease.isLocalID(Lease.parts(ofID: selector).id) else { return false }
        do { try await client.leases.end(selector) } catch ClientError.refused(let problem)
            where problem.code == .notFound
        {
            guard problem.detail.contains("has ended: ") else { return false }
            try options.output.line(Console.plain(problem.detail))
        }
        return true
    }

    /// The error for a text that names neither a lease nor an endpoint.
    static func noLease(of selector: String, among leases: [String]) -> CLIError {
        .notFound(
            "there is no lease of \"\(SanitizedText(selector))\"; leases also end when the broker stops",
            try: CommandSuggestion.respelled(selector, for: "patchbay unlease", among: leases) ?? "patchbay leases"
        )
    }
}

/// The table of `patchbay leases`.
enum LeaseTableView {
    static func table(of leases: [Lease]) -> Table {
        Table(
            of: leases,
            [
                .init("ID", \.id), .init("ENDPOINT", \.endpoint.text),
                .init("PHONE", .optional) { $0.device?.text ?? "-" },
                .init("HOLDER", .flexible, holder), .init("UNTIL", end),
                .init("WAITING", .optional) { $0.waiting.map(String.init) ?? "-" },
                .init("NOTE", .flexible) { $0.note?.text ?? "-" },
            ]
        )
    }

    /// Formats the end; a hyphen for a lease whose end only another host knows.
    static func end(of lease: Lease) -> String { lease.expiresAt.map(Formatting.clock) ?? "-" }

    /// The sentence for a client that waits for the lease of another one.
    static func waiting(for lease: Lease, upTo limit: DurationText) -> String {
        let note = lease.note.map { " (\"\($0)\")" } ?? ""
        let until = lease.expiresAt == nil ? "" : " until \(end(of: lease))"
        return "\(target(of: lease)) is leased to \"\(lease.holder)\"\(note)\(until); waiting up to \(limit)."
    }

    /// Formats the holder: `you`, or its name.
    static func holder(of lease: Lease) -> String { lease.isOwn ? "you" : lease.holder.text }

    /// Formats the endpoint and its phone: `shop-test-iphone and its phone`.
    static func target(of lease: Lease) -> String {
        lease.device == nil ? lease.endpoint.text : "\(lease.endpoint) and its phone"
    }
}
