import FoundationEssentials
import SystemIO

/// Reads the audit log on a thread of its own: the log may be long, and no other work waits for it.
actor AuditLogReader {
    nonisolated var unownedExecutor: UnownedSerialExecutor { Self.thread.asUnownedSerialExecutor() }
    private static let thread = ThreadExecutor(named: "patchbay-audit")
    /// How many lines are checked before a page has its turn.
    private static let share = 200

    private let folder: String

    init(_ folder: String) {
        self.folder = folder
        // The thread takes its descriptor now, and not when there is none left.
        _ = Self.thread
    }

    /// Checks the chain through all segments. `head` is where the database says that the log stands.
    func run(head: AuditEntry.Head) async throws -> AuditReport {
        var chain = AuditChain(endingAt: head)
        let segments = try AuditSegments(in: folder)
        var lines = AuditLines(segments, from: segments.full.first)
        while let line = try lines.next() {
            chain.take(line)
            if chain.lines.isMultiple(of: Self.share) { await Task.yield() }
        }
        return chain.report
    }

    /// Whole lines only: the last one may be being written.
    func lines(after number: Int?, limit: Int) throws -> [Data] {
        guard let number else { return try AuditSegments.tail(limit, in: folder) }
        return try AuditSegments.lines(after: number, limit: limit, in: folder)
    }
}
