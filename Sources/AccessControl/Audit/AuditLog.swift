import CLinux
import FoundationEssentials
import Glibc
import Model
import SystemIO

/// `audit.jsonl`: lines are only ever added, each holds the hash of the one before.
///
/// A file that is full becomes a segment, `audit-1.jsonl` the first, and the chain goes on in a new file. No segment is ever
/// deleted. Blocks, as files do; belongs to the store's thread.
struct AuditLog: ~Copyable {
    /// Room that is asked for ahead of each operation, so that a full disk is noticed before anything is promised.
    private static let headroom = 16 * 1_024
    /// With this many bytes a segment is full.
    static let segment = 8 << 20

    let path: String
    /// The last line of the log at the start.
    let lastLine: Data?
    /// What was cut off at the end: a line that a crash left half written.
    let torn: Int
    private let limit: Int
    private var segments: AuditSegments
    private var file: Descriptor
    private var length: off_t
    /// Lines of a failed append may stand behind `length`.
    private var isDirty = false
    /// The folder may not be on the disk as it is since a segment began.
    private var isFolderDirty = false

    /// Opens the log, makes it when it is not there, and cuts off a line that was never finished.
    init(in folder: String, segment limit: Int = segment) throws(AccessError) {
        let segments = try AuditSegments(in: folder)
        let path = segments.current
        unlink(Self.fresh(path))
        for number in segments.full { try PrivateFile.check(file: segments.path(of: number)) }
        if try !PrivateFile.check(file: path) {
            try PrivateFile.make(path)
            try PrivateFile.sync(folderOf: path)
        }
        let file = try Self.open(path)
        let tail = try FileTail(path)
        let whole = try tail.wholeLength()
        if whole < tail.length { try Self.cut(file.number, to: off_t(whole), path) }
        let last = try AuditSegments.tail(1, in: folder).last
        self.path = path
        self.file = file
        self.segments = segments
        self.limit = limit
        length = off_t(whole)
        torn = tail.length - whole
        lastLine = last
    }

    /// Asks the file system for room for the lines of one operation.
    ///
    /// - Throws: `AccessError.notSaved` when there is none.
    func reserve(for bytes: Int) throws(AccessError) {
        guard CLinux_reserve(file.number, length, off_t(max(bytes, Self.headroom))) < 0 else { return }
        // File systems that cannot do it say so; there the append itself finds out.
        guard errno != EOPNOTSUPP, errno != ENOSYS else { return }
        throw .notSaved(path: path, reason: SocketError.words(for: errno))
    }

    /// Adds lines. When it returns, they are on the disk; when it throws, none of them is in the file.
    mutating func append(_ lines: [Data], crash: @Sendable (FailurePoint) -> Void) throws {
        if isDirty {
            try Self.cut(file.number, to: length, path)
            isDirty = false
        }
        // One that is full serves as well: the next append tries again.
        if length >= limit { try? beginSegment(crash) }
        if isFolderDirty {
            try PrivateFile.sync(folderOf: path)
            isFolderDirty = false
        }
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
                throw AccessError.notSaved(path: path, reason: SocketError.words(for: errno))
            }
        } catch {
            isDirty = true
            throw error
        }
        length += off_t(bytes.count)
    }

    /// Sets the full file aside as a segment, and goes on in a new one.
    ///
    /// A crash between the two renames leaves no `audit.jsonl`: the next start makes one.
    private mutating func beginSegment(_ crash: @Sendable (FailurePoint) -> Void) throws(AccessError) {
        let fresh = Self.fresh(path)
        let number = (segments.full.last ?? 0) + 1
        let full = segments.path(of: number)
        unlink(fresh)
        try PrivateFile.make(fresh)
        let next = try Self.open(fresh)
        guard access(full, F_OK) != 0, rename(path, full) == 0 else {
            throw .notSaved(path: full, reason: SocketError.words(for: errno))
        }
        crash(.auditSegmentFull)
        guard rename(fresh, path) == 0 else {
            let code = errno
            rename(full, path)
            throw .notSaved(path: path, reason: SocketError.words(for: code))
        }
        segments.append(number)
        file = next
        length = 0
        isFolderDirty = true
    }

    private static func fresh(_ path: String) -> String { "\(path).new" }

    private static func open(_ path: String) throws(AccessError) -> Descriptor {
        let number = Glibc.open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .notSaved(path: path, reason: SocketError.words(for: errno)) }
        return Descriptor(owning: number)
    }

    private func write(_ bytes: Data) throws(AccessError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .notSaved(path: path, reason: SocketError.words(for: errno)) }
            rest = rest.dropFirst(count)
        }
    }

    /// Back to the last whole line that counts.
    private static func cut(_ file: CInt, to length: off_t, _ path: String) throws(AccessError) {
        guard ftruncate(file, length) == 0, fdatasync(file) == 0 else {
            throw .notSaved(path: path, reason: SocketError.words(for: errno))
        }
    }
}

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

/// What a check of the whole audit log found.
package struct AuditReport: Hashable, Sendable {
    package let lines: Int
    /// The first line, from 1, that is not what was written, and how that shows; nil when all are.
    package let broken: Break?

    package struct Break: Hashable, Sendable {
        package let line: Int
        package let what: String
    }
}

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
