import FoundationEssentials
import Model

/// Checks the lines of the audit log, one after the other: each holds the hash of the one before.
struct AuditChain {
    /// How many lines came.
    private(set) var lines = 0
    private let end: AuditEntry.Head?
    private var last = AuditEntry.Head.none
    private var broken: AuditReport.Break?

    /// - Parameter head: Where the database says that the log stands, if that is known.
    init(endingAt head: AuditEntry.Head?) { end = head }

    mutating func take(_ text: Data) {
        lines += 1
        guard broken == nil, let fault = fault(in: text) else { return }
        broken = AuditReport.Break(line: lines, what: fault)
    }

    var report: AuditReport {
        if broken == nil, let end, last.number < end.number {
            let what = "the log ends before it, and \(end.number) lines were written"
            return AuditReport(lines: lines, broken: AuditReport.Break(line: lines + 1, what: what))
        }
        return AuditReport(lines: lines, broken: broken)
    }

    private mutating func fault(in text: Data) -> String? {
        guard let line = try? JSONCoding.decoder().decode(AuditEntry.self, from: text) else {
            return "it is not a line of the audit log"
        }
        guard line.number == last.number + 1 else {
            return "it is number \(line.number), and \(last.number + 1) is missing"
        }
        guard line.before == last.hash else {
            return "it does not follow from the line before: one of the two was changed"
        }
        guard (try? line.written().text) == text else { return "it was changed" }
        last = AuditEntry.Head(number: line.number, hash: AuditEntry.hash(of: text))
        if let end, end.number == last.number, end != last { return "it is not the line that was written there" }
        return nil
    }
}
