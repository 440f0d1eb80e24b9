import ArgumentParser
import Client
import FoundationEssentials
import Model

struct ActivityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activity",
        abstract: "Show what agents and people did with apps: their calls, and what changed between them.",
        discussion: """
            The broker remembers the last calls in memory, without secrets (activity.calls in its configuration). An owner \
            sees all, and the client of a grant its own.

            --html writes one file without scripts, with every call and its pictures, to attach to a bug report.

              patchbay activity --since 10m --failed
              patchbay activity --follow
              patchbay activity --html report.html --grant 0a1b2c3d
            """
    )

    /// The longest wait for an entry with `--follow`, in seconds.
    private static let wait = 60
    private static let maxSeconds = 31_536_000

    @Flag(help: "Go on with each new or ended call until Ctrl-C.")
    var follow = false
    @Option(
        help: ArgumentHelp("Show only this endpoint, by ID, name, app or phone UDID.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var endpoint: String?
    @Option(help: ArgumentHelp("Show only the calls of this grant.", valueName: "id"))
    var grant: String?
    @Option(
        help: ArgumentHelp("Show only what happened within this time.", valueName: "time"),
        transform: { try DurationText.parse($0, upTo: maxSeconds, as: "365d") }
    )
    var since: DurationText?
    @Flag(help: "Show only the calls that ended without success.")
    var failed = false
    @Option(help: ArgumentHelp("Write a report to this file.", valueName: "file"), completion: .file())
    var html: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if html != nil, follow || format.json {
            throw ValidationError("--html and \(follow ? "--follow" : "--json") exclude each other.")
        }
    }

    func run() async throws {
        let client = try options.client
        var query = ActivityClient.Query(grant: try await Self.grant(grant, client), outcome: failed ? "failed" : nil)
        if let endpoint {
            let chosen = try await EndpointSelector(text: endpoint, command: "patchbay activity --endpoint").choose(
                client
            )
            if let host = chosen.id.host { throw Self.isElsewhere(chosen.id, host) }
            query.endpoint = chosen.id.text
        }
        query.limit = 1_000
        let output = options.output
        let page = try await client.activity.page(query)
        guard page.limit > 0 else {
            throw CLIError(
                status: .error,
                message: "the broker keeps no activity",
                hint: "set activity.calls in its configuration, and restart it"
            )
        }
        let start = since.map { Date() - TimeInterval($0.seconds) } ?? .distantPast
        let entries = page.entries.filter { $0.at >= start }
        if let html { return try await write(entries, to: html, client, output) }
        if format.json, !follow { return try output.json(Self.document(page, entries)) }
        let isFiltered = endpoint != nil || grant != nil || since != nil || failed
        let printer = ActivityPrinter(isJSON: format.json, isFiltered: isFiltered, output: output)
        try printer.show(entries, isWhole: !follow)
        guard follow else { return }
        try await self.follow(from: page.revision, query, client, printer)
    }

    /// Returns the grant that an ID or the beginning of one selects.
    ///
    /// - Throws: `CLIError` for an unknown ID. A client that may not list grants gets the ID as it is.
    private static func grant(_ id: String?, _ client: PatchbayClient) async throws -> String? {
        guard let id, let known = try? await client.grants().map(\.id), !known.contains(id) else { return id }
        if let whole = RevokeCommand.whole(id, among: known) { return whole }
        throw CLIError.notFound(
            "no grant has the ID \"\(SanitizedText(id))\"",
            try: CommandSuggestion.respelled(id, for: "patchbay activity --grant", among: known)
                ?? "patchbay grants --all lists the IDs"
        )
    }

    /// The broker of a host keeps the calls of its apps, also those of clients of other hosts.
    static func isElsewhere(_ id: EndpointID, _ host: HostName) -> CLIError {
        CLIError(
            status: .notFound,
            message: "the calls of \(id) are recorded at the host \(host)",
            hint: "on that host, patchbay activity --endpoint \(id.onItsHost)"
        )
    }

    private static func document(_ page: ActivityPage, _ entries: [ActivityEntry]) -> JSONObject {
        ActivityPage(
            limit: page.limit,
            oldest: page.oldest,
            newest: page.newest,
            revision: page.revision,
            entries: entries
        ).json.object ?? [:]
    }

    /// Prints entries as they begin and end. After a restart of the broker, entries are numbered from 1 again.
    private func follow(
        from revision: UInt64,
        _ query: ActivityClient.Query,
        _ client: PatchbayClient,
        _ printer: ActivityPrinter
    ) async throws {
        var (query, revision, isFirst) = (query, revision, true)
        query.wait = Self.wait
        let errors = Console.errors()
        let stream = RetryingStream { text in try? errors.line(text) }
        try await stream.run { answered in
            if isFirst { answered() } else { revision = 0 }
            isFirst = false
            while true {
                query.since = revision
                let page = try await client.activity.page(query)
                answered()
                revision = page.revision
                try printer.show(page.entries, isWhole: false)
            }
        }
    }

    private func write(
        _ entries: [ActivityEntry],
        to path: String,
        _ client: PatchbayClient,
        _ output: Console
    ) async throws {
        let file = OutputFile(path: path)
        try file.check()
        let listed = try? await client.endpoints().endpoints
        var report = ActivityReport(entries: entries, listed: listed ?? [])
        for entry in entries where entry.call?.picture != nil {
            if let picture = try await client.activity.picture(of: entry, width: ActivityReport.pictureWidth) {
                report.add(picture.bytes, type: picture.type, of: entry.id)
            }
        }
        // Arguments and results of calls can be private.
        try file.write(Array(report.html.utf8), isPrivate: true)
        guard !file.isStandardOutput else { return }
        let calls = entries.count { $0.call != nil }
        try output.line("Wrote \(Formatting.count(calls, "call")) to \(SanitizedText(path, limit: 500)).")
    }
}

/// Prints entries as a table, as lines, or as JSON.
struct ActivityPrinter {
    let isJSON: Bool
    /// True if options selected the entries.
    let isFiltered: Bool
    let output: Console

    /// Prints entries: a list as a table, and those of `--follow` as lines.
    func show(_ entries: [ActivityEntry], isWhole: Bool) throws {
        if isJSON {
            for entry in entries { try output.json(entry.json.object ?? [:]) }
        } else if isWhole {
            guard !entries.isEmpty else { return try output.line(isFiltered ? "No matching calls." : "No calls yet.") }
            try output.table(Self.table(of: entries))
        } else {
            for entry in entries { try output.line(Self.line(entry)) }
        }
    }

    static func table(of entries: [ActivityEntry]) -> Table {
        Table(
            of: entries,
            [
                .init("TIME") { Formatting.clock($0.at) },
                .init("CLIENT", .flexible) { $0.call.map { name(of: $0.client) } ?? "-" },
                .init("APP", .flexible, \.endpoint.text),
                .init("TOOL", .flexible, tool),
                .init("MS") { $0.call.map { $0.durationMilliseconds.map(String.init) ?? "-" } ?? "" },
                .init("OUTCOME", style: { $0.call?.outcome.isFailure == true ? .red : .plain }) {
                    $0.call?.outcome.rawValue ?? ""
                },
            ]
        )
    }

    /// The tool of a call, and the words of a change.
    private static func tool(of entry: ActivityEntry) -> String {
        switch entry.content {
        case .change(let text, _): SanitizedText(text).text
        case .call(let call): call.tool.text
        }
    }

    /// The client with its program: `claude-code 2.1 (Anna’s agent)`.
    static func name(of client: ActivityEntry.Client) -> String {
        client.agent.map { "\($0) (\(client.name))" } ?? client.name.text
    }

    static func line(_ entry: ActivityEntry) -> String {
        let start = "\(Formatting.clock(entry.at))  \(entry.endpoint)"
        switch entry.content {
        case .change(let text, _): return "\(start)  \(SanitizedText(text))"
        case .call(let call):
            let end = call.durationMilliseconds.map { "  \($0) ms" } ?? ""
            return "\(start)  \(call.tool)  \(call.outcome.rawValue)\(end)  by \(name(of: call.client))"
        }
    }
}
