import FoundationEssentials
import Model

/// Compares the audit log with the database at start: which of the two knows more, and what follows from it.
struct AuditRecovery: Sendable {
    /// How many faults of single lines are named; the others are counted.
    private static let namedFaults = 10

    /// Lines that the database does not know, without calls of tools: it is an old copy.
    private(set) var unknown: [AuditEntry] = []
    /// Lines that the file lacks: a crash came between the commit and the append.
    private(set) var missing: [PersistedState.PendingLine] = []
    /// Where the log goes on, and where its file ends.
    private(set) var head: AuditEntry.Head
    private(set) var written = AuditEntry.Head.none
    /// When the last line was written.
    private(set) var time: MonotonicTime?
    private(set) var findings: [String] = []

    /// - Throws: `AccessError.notRead`.
    init(_ file: borrowing AuditLog, in folder: String, after contents: PersistedState) throws(AccessError) {
        head = contents.head
        if file.torn > 0 {
            findings.append("the last line of audit.jsonl was cut off in a crash and is gone (\(file.torn) bytes)")
        }
        // Usually the end is enough.
        guard let text = file.lastLine else {
            if head != .none { compare(Whole(), contents) }
            return
        }
        if let last = try? Self.read(text) {
            written = last.head
            time = last.line.effective
            if written == head { return }
            missing = contents.pending.filter { $0.number > last.head.number }
            if missing.first?.number == written.number + 1 { return }
            missing = []
        }
        compare(try readAll(in: folder), contents)
    }

    /// What the whole log says that matters here.
    private struct Whole {
        var lines: [AuditEntry] = []
        var count = 0
        /// How many of them are behind the database's head.
        var later = 0
        var hasHead = false
    }

    private mutating func readAll(in folder: String) throws(AccessError) -> Whole {
        let segments = try AuditSegments(in: folder)
        var reader = AuditLines(segments, from: segments.full.first)
        var whole = Whole()
        var (index, faults) = (0, 0)
        (written, time) = (.none, nil)
        while let text = try reader.next() {
            index += 1
            guard let line = try? JSONCoding.decoder().decode(AuditEntry.self, from: text) else {
                faults += 1
                if faults <= Self.namedFaults {
                    findings.append("line \(index) of audit.jsonl is damaged; patchbay audit --verify says more")
                }
                continue
            }
            whole.count += 1
            if line.number > head.number { whole.later += 1 }
            if line.number == head.number, AuditEntry.hash(of: text) == head.hash { whole.hasHead = true }
            if line.number > written.number {
                written = AuditEntry.Head(number: line.number, hash: AuditEntry.hash(of: text))
                time = line.effective
            }
            // A call ends and spends nothing; most lines are calls.
            if line.event.action != .called { whole.lines.append(line) }
        }
        if faults > Self.namedFaults {
            findings.append("\(faults - Self.namedFaults) more lines of audit.jsonl are damaged")
        }
        return whole
    }

    private mutating func compare(_ whole: Whole, _ contents: PersistedState) {
        let isSameStory = head == .none || whole.hasHead
        if isSameStory || written.number > head.number {
            // The database is older than the log, or of another story altogether: then all of it counts.
            let known = isSameStory ? head.number : 0
            unknown = whole.lines.filter { $0.number > known }
            let count = isSameStory ? whole.later : whole.count
            head = written
            if count > 0 {
                findings.append(
                    "pairing.sqlite is older than audit.jsonl; what its last \(count) lines say was spent or revoked stays so"
                )
            }
            return
        }
        missing = contents.pending.filter { $0.number > written.number }
        if missing.first?.number != written.number + 1 {
            findings.append("audit.jsonl was shortened from outside after line \(written.number) of \(head.number)")
        }
    }

    private static func read(_ text: Data) throws -> (line: AuditEntry, head: AuditEntry.Head) {
        let line = try JSONCoding.decoder().decode(AuditEntry.self, from: text)
        return (line, AuditEntry.Head(number: line.number, hash: AuditEntry.hash(of: text)))
    }
}
