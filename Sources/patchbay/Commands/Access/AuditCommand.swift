import ArgumentParser
import Client
import FoundationEssentials
import Model

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show or verify the audit log of granted, refused and revoked access.",
        discussion: """
            Each entry contains the hash of the previous entry; --verify detects changed and missing entries. --json \
            prints the entries as they are in the log file.

              patchbay audit
              patchbay audit --since 1h
              patchbay audit --last 20 --json | jq -c .event
              patchbay audit --verify
            """
    )

    @Flag(help: "Verify all entries of the log; exit with 1 if an entry is invalid.")
    var verify = false
    @Option(help: ArgumentHelp("Show at most this many entries, 1 to 1000. Default: 100.", valueName: "count"))
    var last: Int?
    @Option(
        help: ArgumentHelp("Show the entries of this time until now, up to 365d.", valueName: "time"),
        transform: { try DurationText.parse($0, upTo: 365 * 86_400, as: "365d") }
    )
    var since: DurationText?
    @Option(help: ArgumentHelp("Show only entries after this number.", valueName: "number"))
    var after: Int?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let last, !Self.counts.contains(last) { throw ValidationError("--last must be 1 to 1000.") }
        if verify, after != nil { throw ValidationError("--verify and --after exclude each other.") }
        if since != nil, verify || after != nil {
            throw ValidationError("--since excludes --verify and --after.")
        }
    }

    func run() async throws {
        let client = try options.client
        let output = options.output
        if verify { return try check(await client.audit.verify(), output) }
        let lines =
            if let since {
                try await Self.lines(since: Date() - TimeInterval(since.seconds)) { after, limit in
                    try await client.audit.entries(after: after, limit: limit).lines
                }.suffix(last ?? .max)
            } else { try await client.audit.entries(after: after, limit: last ?? 100).lines[...] }
        for line in lines {
            // An entry that this version cannot decode is printed unchanged.
            let entry = format.json ? nil : try? JSONCoding.decoder().decode(AuditLogLine.self, from: Data(line.utf8))
            let text = entry?.text(width: output.width, isColoured: output.isColoured)
            try output.line(text ?? Console.escaped(line))
        }
        if lines.isEmpty, !format.json {
            try output.line(
                after.map { "The audit log has no entry after \($0)." }
                    ?? (since == nil ? "The audit log is empty." : "The audit log has no entry of this time.")
            )
        }
    }

    private static let counts = 1...1_000

    /// Returns the entries since a time, oldest first. Reads the log backwards, page by page.
    static func lines(
        since start: Date,
        read: (_ after: Int?, _ limit: Int) async throws -> [String]
    ) async throws -> [String] {
        var lines: [String] = []
        var page = try await read(nil, counts.upperBound)
        while let first = page.first.flatMap(AuditTime.init) {
            lines.insert(contentsOf: page.drop { AuditTime($0).map { $0.wallTime < start } ?? false }, at: 0)
            guard first.wallTime >= start, first.number > 1 else { break }
            let before = max(0, first.number - 1 - counts.upperBound)
            // The log may have lost its oldest entries.
            page = try await read(before, first.number - 1 - before).filter { line in
                AuditTime(line).map { $0.number < first.number } ?? false
            }
        }
        return lines
    }

    private func check(_ verification: AuditVerification, _ output: Console) throws {
        if format.json { try output.document(verification) }
        if let number = verification.firstInvalidEntry {
            throw CLIError.failed(
                "entry \(number) of the audit log is invalid: \(verification.reason ?? "its hash differs")",
                try: "compare audit.jsonl with a backup; only the entries before that one are trustworthy"
            )
        }
        guard !format.json else { return }
        let entries = Formatting.count(verification.entries, "entry", plural: "entries")
        try output.line("The audit log is valid: \(entries).")
    }
}

/// The number and the time of an audit log entry.
private struct AuditTime: Decodable {
    let number: Int
    let wallTime: Date

    init?(_ line: String) {
        guard let time = try? JSONCoding.decoder().decode(Self.self, from: Data(line.utf8)) else { return nil }
        self = time
    }
}

/// The displayed fields of one audit log entry.
struct AuditLogLine: Decodable {
    struct Event: Decodable {
        let action: String
        let who: AuditActor
        let from: Source
        let invite: String?
        let grant: String?
        let ended: [String]?
        let endpoint: EndpointID?
        let subject: String?
        let detail: String?
        let alert: Bool?
    }

    /// The connection of the client. Only the sources with an address are decoded.
    struct Source: Decodable {
        struct Peer: Decodable { let address: String }

        let tcp: Peer?
        let remote: Peer?
    }

    private static let indent = "      "

    let number: Int
    let wallTime: Date
    let event: Event

    /// Formats the entry: `12  2026-11-21T14:30:00Z  revoked  grant 0a1b2c3d  by user 1000, …`.
    ///
    /// - Parameters:
    ///   - width: The terminal's width, at which lines break between words; nil for pipes and files.
    ///   - isColoured: True to apply the styles.
    /// - Returns: One or more lines without a final line break.
    func text(width: Int?, isColoured: Bool) -> String {
        let style: ANSIStyle = event.alert == true ? .red : .bold
        let subjects = [
            event.invite.map { "invite \($0)" }, event.grant.map { "grant \($0)" }, event.endpoint.map(\.text),
            event.subject.map { event.endpoint == nil ? "\"\($0)\"" : $0 },
        ].compactMap { $0 }
        var facts = subjects + ["by \(caller)"]
        let ended = (event.ended ?? []).filter { $0 != event.grant && $0 != event.invite }
        if !ended.isEmpty { facts.append("with \(ended.joined(separator: ", "))") }
        if let detail = event.detail { facts.append(detail) }
        let time = JSONCoding.text(of: wallTime).prefix { $0 != "." } + "Z"
        let action = SanitizedText(event.action).text
        var text = "\(number)  \(time)  \(style.paint(action, isOn: isColoured))"
        var columns = "\(number)  \(time)  \(action)".columns
        for fact in facts.map({ SanitizedText($0, limit: .max).text }) {
            for (index, word) in fact.split(separator: " ").map(String.init).enumerated() {
                let gap = index == 0 ? "  " : " "
                let isWide = columns + gap.columns + word.columns > width ?? .max
                text += (isWide ? "\n" + Self.indent : gap) + word
                columns = (isWide ? Self.indent.columns : columns + gap.columns) + word.columns
            }
        }
        return text
    }

    /// The client, with its address if that is all that is known of it.
    private var caller: String {
        let address = (event.from.remote ?? event.from.tcp)?.address
        let name = Formatting.caller(event.who)
        guard event.who == .anonymous, let address else { return name }
        return "\(name) at \(address)"
    }
}
