import CLinux
import FoundationEssentials
import Glibc
import Model
import Sockets

/// `audit.jsonl`: lines are only ever added, each holds the hash of the one before.
///
/// Blocks, as files do; belongs to the store's thread.
struct AuditFile: ~Copyable {
    /// Room that is asked for ahead of each operation, so that a full disk is noticed before anything is promised.
    private static let headroom = 16 * 1_024

    let path: String
    private let file: Descriptor
    private var length: off_t
    /// What was cut off at the end: a line that a crash left half written.
    let torn: Int

    /// Opens the log, makes it when it is not there, and cuts off a line that was never finished.
    init(in folder: String) throws(PairingError) {
        let path = "\(folder)/audit.jsonl"
        if try !PrivateFile.check(file: path) {
            try PrivateFile.make(path)
            try PrivateFile.sync(folderOf: path)
        }
        let number = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .notSaved(path: path, reason: SocketError.words(for: errno)) }
        let file = Descriptor(owning: number)
        let data = try Self.read(path)
        let whole = (data.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
        if whole < data.count { try Self.cut(file.number, to: whole, path) }
        self.path = path
        self.file = file
        length = whole
        torn = data.count - whole
    }

    /// Every line as it stands, without its end.
    func lines() throws(PairingError) -> [Data] { Self.lines(of: try Self.read(path)) }

    /// Asks the file system for room for the lines of one operation.
    ///
    /// - Throws: `PairingError.notSaved` when there is none.
    func reserve(for bytes: Int) throws(PairingError) {
        guard CLinux_reserve(file.number, length, off_t(max(bytes, Self.headroom))) < 0 else { return }
        // File systems that cannot do it say so; there the append itself finds out.
        guard errno != EOPNOTSUPP, errno != ENOSYS else { return }
        throw .notSaved(path: path, reason: SocketError.words(for: errno))
    }

    /// Adds lines. When it returns, they are on the disk; when it throws, none of them is in the file.
    mutating func append(_ lines: [Data], crash: @Sendable (CrashPoint) -> Void) throws {
        var bytes = Data()
        for line in lines {
            bytes.append(line)
            bytes.append(UInt8(ascii: "\n"))
        }
        do {
            // In two parts, so that a test can see what a crash between them leaves.
            try write(bytes.prefix(bytes.count / 2))
            crash(.auditHalfWritten)
            try write(bytes.dropFirst(bytes.count / 2))
            crash(.auditWritten)
            guard fdatasync(file.number) == 0 else {
                throw PairingError.notSaved(path: path, reason: SocketError.words(for: errno))
            }
        } catch {
            try? Self.cut(file.number, to: length, path)
            throw error
        }
        length += off_t(bytes.count)
    }

    /// Checks the whole chain.
    ///
    /// The head is where the database says that the log stands, if that is known.
    static func verify(_ path: String, head: AuditLine.Head?) throws -> AuditReport {
        let data = try Data(contentsOf: URL(filePath: path))
        var last = AuditLine.Head.none
        let lines = lines(of: data)
        func broken(_ line: Int, _ what: String) -> AuditReport {
            AuditReport(lines: lines.count, broken: AuditReport.Break(line: line, what: what))
        }
        for (index, text) in lines.enumerated() {
            guard let line = try? Wire.decoder().decode(AuditLine.self, from: text) else {
                return broken(index + 1, "it is not a line of the audit log")
            }
            guard line.number == last.number + 1 else {
                return broken(index + 1, "it is number \(line.number), and \(last.number + 1) is missing")
            }
            guard line.before == last.hash else {
                return broken(index + 1, "it does not follow from the line before: one of the two was changed")
            }
            guard (try? line.written().text) == text else { return broken(index + 1, "it was changed") }
            last = AuditLine.Head(number: line.number, hash: AuditLine.hash(of: text))
            if let head, head.number == last.number, head != last {
                return broken(index + 1, "it is not the line that was written there")
            }
        }
        if let head, last.number < head.number {
            return broken(lines.count + 1, "the log ends before it, and \(head.number) lines were written")
        }
        return AuditReport(lines: lines.count, broken: nil)
    }

    private static func lines(of data: Data) -> [Data] { data.split(separator: UInt8(ascii: "\n")) }

    private static func read(_ path: String) throws(PairingError) -> Data {
        do { return try Data(contentsOf: URL(filePath: path)) } catch {
            throw .notSaved(path: path, reason: "it cannot be read")
        }
    }

    private func write(_ bytes: Data) throws(PairingError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .notSaved(path: path, reason: SocketError.words(for: errno)) }
            rest = rest.dropFirst(count)
        }
    }

    /// Back to the last whole line that counts.
    private static func cut(_ file: CInt, to length: off_t, _ path: String) throws(PairingError) {
        guard ftruncate(file, length) == 0, fdatasync(file) == 0 else {
            throw .notSaved(path: path, reason: SocketError.words(for: errno))
        }
    }
}
