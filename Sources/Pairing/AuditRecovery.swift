import FoundationEssentials
import Model

/// Compares the audit log with the database at start: which of the two knows more, and what follows from it.
struct AuditRecovery: Sendable {
    /// Lines that the database does not know: it is an old copy.
    private(set) var unknown: [AuditLine] = []
    /// Lines that the file lacks: a crash came between the commit and the append.
    private(set) var missing: [Contents.PendingLine] = []
    /// Where the log goes on, and where its file ends.
    private(set) var head: AuditLine.Head
    private(set) var written = AuditLine.Head.none
    /// When the last line was written.
    private(set) var time: EffectiveTime?
    private(set) var findings: [String] = []

    init(_ lines: [Data], torn: Int, after contents: Contents) {
        head = contents.head
        if torn > 0 {
            findings.append("the last line of audit.jsonl was cut off in a crash and is gone (\(torn) bytes)")
        }
        // Usually the end is enough.
        if let last = lines.last.flatMap({ try? Self.read($0) }) {
            written = last.head
            time = last.line.effective
            if written == head { return }
        } else if lines.isEmpty, head == .none {
            return
        }
        let all = lines.enumerated().compactMap { index, text -> (line: AuditLine, head: AuditLine.Head)? in
            if let read = try? Self.read(text) { return read }
            findings.append("line \(index + 1) of audit.jsonl is damaged; patchbay audit --verify says more")
            return nil
        }
        if let last = all.max(by: { $0.head.number < $1.head.number }) {
            written = last.head
            time = last.line.effective
        }
        compare(all, contents)
    }

    private mutating func compare(_ all: [(line: AuditLine, head: AuditLine.Head)], _ contents: Contents) {
        let isSameStory = head == .none || all.contains { $0.head == head }
        if isSameStory || written.number > head.number {
            // The database is older than the log, or of another story altogether: then all of it counts.
            unknown = all.map(\.line).filter { !isSameStory || $0.number > head.number }
            head = written
            if !unknown.isEmpty {
                findings.append(
                    "pairing.sqlite is older than audit.jsonl; what its last \(unknown.count) lines say was spent or revoked stays so"
                )
            }
            return
        }
        missing = contents.pending.filter { $0.number > written.number }
        if missing.first?.number != written.number + 1 {
            findings.append("audit.jsonl was shortened from outside after line \(written.number) of \(head.number)")
        }
    }

    private static func read(_ text: Data) throws -> (line: AuditLine, head: AuditLine.Head) {
        let line = try Wire.decoder().decode(AuditLine.self, from: text)
        return (line, AuditLine.Head(number: line.number, hash: AuditLine.hash(of: text)))
    }
}
