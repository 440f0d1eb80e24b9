import FoundationEssentials
import Sockets

/// Reads the audit log on the files' thread, as it may be long.
actor AuditCheck {
    nonisolated var unownedExecutor: UnownedSerialExecutor { SerialThread.files.asUnownedSerialExecutor() }

    func run(_ path: String, head: AuditLine.Head) throws -> AuditReport { try AuditFile.verify(path, head: head) }

    /// Whole lines only: the last one may be being written.
    func lines(_ path: String, after number: Int?, limit: Int) throws -> [Data] {
        let data = try Data(contentsOf: URL(filePath: path))
        let whole = data.prefix((data.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1)
        let lines = whole.split(separator: UInt8(ascii: "\n"))
        // Line n is number n: the log begins with 1 and leaves none out.
        guard let number else { return lines.suffix(limit) }
        return Array(lines.dropFirst(max(0, number)).prefix(limit))
    }
}
