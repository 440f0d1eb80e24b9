import ArgumentParser
import Client
import FoundationEssentials
import Model

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show the log of who was let in, refused and revoked, or check that it is whole.",
        discussion: """
            Each line of the log holds the hash of the one before, so that a changed or missing line shows. With --json \
            the lines are the log's own.

              patchbay audit
              patchbay audit --last 20 --json | jq -c .event
              patchbay audit --verify
            """
    )

    @Flag(help: "Check every line of the whole log; ends with 1 when one is not what was written.")
    var verify = false
    @Option(help: ArgumentHelp("How many lines, up to 1000.", valueName: "count"))
    var last = 100
    @Option(help: ArgumentHelp("Only lines after the one with this number.", valueName: "number"))
    var after: Int?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if !(1...1_000).contains(last) { throw ValidationError("--last is a number from 1 to 1000.") }
        if verify, after != nil { throw ValidationError("--verify checks the whole log; give it without --after.") }
    }

    func run() async throws {
        let client = try options.client
        let output = options.output
        if verify { return try check(await client.verifyAudit(), output) }
        let lines = try await client.audit(after: after, limit: last).lines
        for line in lines {
            // A line that this version cannot read is shown as it is rather than left out.
            let entry = format.json ? nil : try? JSONCoding.decoder().decode(AuditLogLine.self, from: Data(line.utf8))
            try output.line(entry?.text(isColoured: output.isColoured) ?? Console.escaped(line))
        }
        if lines.isEmpty, !format.json {
            try output.line(
                after.map { "The audit log has no line after \($0)." }
                    ?? "The audit log is empty: nobody was let in, refused or revoked yet."
            )
        }
    }

    private func check(_ verdict: AuditVerification, _ output: Console) throws {
        if format.json { try output.document(verdict) }
        if let line = verdict.brokenLine {
            throw CLIError(
                status: .error,
                message: "line \(line) of the audit log is not what was written: \(verdict.what ?? "its hash differs")",
                remedy: "compare with a copy of audit.jsonl; until then trust only the lines before: patchbay audit"
            )
        }
        if !format.json { try output.line("The audit log is whole: \(Formatting.count(verdict.lines, "line")).") }
    }
}

/// One line of the audit log, as much of it as a person reads.
struct AuditLogLine: Decodable {
    struct Event: Decodable {
        let action: String
        let who: AuditActor
        let invite: String?
        let grant: String?
        let ended: [String]?
        let endpoint: EndpointID?
        let detail: String?
        let isAlert: Bool?
    }

    let number: Int
    let wall: Date
    let event: Event

    /// `12  2026-11-21T14:30:00.000Z  revoked  grant 0a1b2c3d  by user 1000, …`.
    func text(isColoured: Bool) -> String {
        let style: ANSIStyle = event.isAlert == true ? .red : .bold
        let subjects = [
            event.invite.map { "invite \($0)" }, event.grant.map { "grant \($0)" }, event.endpoint.map(\.text),
        ].compactMap { $0 }
        var words = subjects + ["by \(Formatting.caller(event.who))"]
        let ended = (event.ended ?? []).filter { $0 != event.grant && $0 != event.invite }
        if !ended.isEmpty { words.append("with \(ended.joined(separator: ", "))") }
        if let detail = event.detail { words.append(detail) }
        let action = style.paint(SanitizedText(event.action).text, isOn: isColoured)
        let facts = words.map { SanitizedText($0, limit: .max).text }.joined(separator: "  ")
        return "\(number)  \(JSONCoding.text(of: wall))  \(action)  \(facts)"
    }
}
