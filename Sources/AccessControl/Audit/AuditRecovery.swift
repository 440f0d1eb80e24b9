import FoundationEssentials
import Model

/// Compares the audit log with the database at startup, and decides which entries each of them lacks.
struct AuditRecovery: Sendable {
    /// Number of damaged lines that are reported one by one; further ones are only counted.
    private static let namedFaults = 10

    /// Entries that the database lacks because the database is an old copy. Excludes tool calls.
    private(set) var unknown: [AuditEntry] = []
    /// Entries that the file lacks because of a crash between commit and append.
    private(set) var missing: [PersistedState.PendingLine] = []
    /// `head` is the position at which the log continues; `written` is the position at which its file ends.
    private(set) var head: AuditEntry.Head
    private(set) var written = AuditEntry.Head.none
    /// Time of the last entry.
    private(set) var time: MonotonicTime?
    private(set) var findings: [String] = []

    /// Compares the log with the database.
    ///
    /// - Throws: `AccessError.notRead`.
    init(_ file: borrowing AuditLog, in folder: String, after contents: PersistedState) throws(AccessError) {
        head = contents.head
        if file.truncatedBytes > 0 {
            findings.append(
                "the last line of audit.jsonl was incomplete after a crash and was removed (\(file.truncatedBytes) bytes)"
            )
        }
        // Usually the last line is enough.
        guard let text = file.lastLine else {
            if head != .none { compare(FullScan(), contents) }
            return
        }
        if let last = try? Self.read(text) {
            written = last.head
            time = last.line.logicalTime
            if written == head { return }
            missing = contents.pending.filter { $0.number > last.head.number }
            if missing.first?.number == written.number + 1 { return }
            missing = []
        }
        compare(try readAll(in: folder), contents)
    }

    /// Relevant content of the whole log.
    private struct FullScan {
        var lines: [AuditEntry] = []
        var count = 0
        /// Number of entries after the database's head.
        var later = 0
        var hasHead = false
    }

    private mutating func readAll(in folder: String) throws(AccessError) -> FullScan {
        let segments = try AuditSegments(in: folder)
        var reader = AuditLineReader(segments, from: segments.full.first)
        var scan = FullScan()
        var (index, faults) = (0, 0)
        (written, time) = (.none, nil)
        while let text = try reader.next() {
            index += 1
            guard let line = try? JSONCoding.decoder().decode(AuditEntry.self, from: text) else {
                faults += 1
                if faults <= Self.namedFaults {
                    findings.append("line \(index) of audit.jsonl is damaged; patchbay audit --verify gives details")
                }
                continue
            }
            scan.count += 1
            if line.number > head.number { scan.later += 1 }
            if line.number == head.number, AuditEntry.hash(of: text) == head.hash { scan.hasHead = true }
            if line.number > written.number {
                written = AuditEntry.Head(number: line.number, hash: AuditEntry.hash(of: text))
                time = line.logicalTime
            }
            // A call neither ends nor spends anything. Most entries are calls.
            if line.event.action != .called { scan.lines.append(line) }
        }
        if faults > Self.namedFaults {
            findings.append("\(faults - Self.namedFaults) more lines of audit.jsonl are damaged")
        }
        return scan
    }

    private mutating func compare(_ scan: FullScan, _ contents: PersistedState) {
        let isSameChain = head == .none || scan.hasHead
        if isSameChain || written.number > head.number {
            // The database is older than the log, or belongs to a different log. In the second case all entries apply.
            let known = isSameChain ? head.number : 0
            unknown = scan.lines.filter { $0.number > known }
            let count = isSameChain ? scan.later : scan.count
            head = written
            if count > 0 {
                findings.append(
                    "access.sqlite is older than audit.jsonl; what its last \(count) lines spent or revoked stays spent or revoked"
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
