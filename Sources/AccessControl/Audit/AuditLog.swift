import CLinux
import FoundationEssentials
import Glibc
import Model
import SystemIO

/// `audit.jsonl`, the append-only audit log. Each line holds the hash of the previous one.
///
/// A full file becomes a segment (`audit-1.jsonl` is the first), and the chain continues in a new file. A retention
/// deletes the oldest segments, and the chain has an entry about the deletion. Blocks on file I/O; used only on the thread
/// of `AccessStore`.
struct AuditLog: ~Copyable {
    /// Minimum space reserved before each operation, so that a full disk is detected before anything is committed.
    private static let reservedBytes = 16 * 1_024
    /// Size in bytes at which a segment is full.
    static let segment = 8 << 20

    let path: String
    /// The last line of the log at the start.
    let lastLine: Data?
    /// Number of bytes removed at the end at the start: a line that a crash left incomplete.
    let truncatedBytes: Int
    private let limit: Int
    private var segments: AuditSegments
    private var file: Descriptor
    private var length: off_t
    /// True if a failed append may have left bytes behind `length`.
    private var needsTruncation = false
    /// True if the folder needs fsync(2) because a new segment began.
    private var needsFolderSync = false

    /// Opens or creates the log, and removes an incomplete last line.
    init(in folder: String, segment limit: Int = segment) throws(AccessError) {
        let segments = try AuditSegments(in: folder)
        let path = segments.current
        unlink(Self.temporaryPath(for: path))
        for number in segments.full { try PrivateFile.check(file: segments.path(of: number)) }
        if try !PrivateFile.check(file: path) {
            try PrivateFile.create(path)
            try PrivateFile.sync(folderOf: path)
        }
        let file = try Self.open(path)
        let tail = try ReverseLineReader(path)
        let completeLength = try tail.completeLength()
        if completeLength < tail.length { try Self.truncate(file.number, to: off_t(completeLength), path: path) }
        let last = try AuditSegments.tail(1, in: folder).last
        self.path = path
        self.file = file
        self.segments = segments
        self.limit = limit
        length = off_t(completeLength)
        truncatedBytes = tail.length - completeLength
        lastLine = last
    }

    /// Reserves disk space for the lines of one operation.
    ///
    /// - Throws: `AccessError.notSaved` when the disk is full.
    func reserve(for bytes: Int) throws(AccessError) {
        guard CLinux_reserve(file.number, length, off_t(max(bytes, Self.reservedBytes))) < 0 else { return }
        // The file system does not support reservation; the append detects a full disk.
        guard errno != EOPNOTSUPP, errno != ENOSYS else { return }
        throw .notSaved(path: path, reason: SocketError.message(for: errno))
    }

    /// Appends lines. They are on the disk when this returns. If this throws, the next append first removes what was
    /// written.
    mutating func append(_ lines: [Data], failurePoint: @Sendable (FailurePoint) -> Void) throws {
        if needsTruncation {
            try Self.truncate(file.number, to: length, path: path)
            needsTruncation = false
        }
        // If no new segment can begin, the full file is used; the next append tries again.
        if length >= limit { try? beginSegment(failurePoint) }
        if needsFolderSync {
            try PrivateFile.sync(folderOf: path)
            needsFolderSync = false
        }
        var bytes = Data()
        for line in lines {
            bytes.append(line)
            bytes.append(UInt8(ascii: "\n"))
        }
        do {
            // Written in two parts, so that tests can crash between them.
            try write(bytes.prefix(bytes.count / 2))
            failurePoint(.auditHalfWritten)
            try write(bytes.dropFirst(bytes.count / 2))
            failurePoint(.auditWritten)
            guard fdatasync(file.number) == 0 else {
                throw AccessError.notSaved(path: path, reason: SocketError.message(for: errno))
            }
        } catch {
            needsTruncation = true
            throw error
        }
        length += off_t(bytes.count)
    }

    /// Renames the full file to a segment and continues in a new file.
    ///
    /// A crash between the two renames leaves no `audit.jsonl`; the next start creates one.
    private mutating func beginSegment(_ failurePoint: @Sendable (FailurePoint) -> Void) throws(AccessError) {
        let temporary = Self.temporaryPath(for: path)
        let number = (segments.full.last ?? 0) + 1
        let full = segments.path(of: number)
        unlink(temporary)
        try PrivateFile.create(temporary)
        let next = try Self.open(temporary)
        guard access(full, F_OK) != 0, rename(path, full) == 0 else {
            throw .notSaved(path: full, reason: SocketError.message(for: errno))
        }
        failurePoint(.auditSegmentFull)
        guard rename(temporary, path) == 0 else {
            let code = errno
            rename(full, path)
            throw .notSaved(path: path, reason: SocketError.message(for: code))
        }
        segments.append(number)
        file = next
        length = 0
        needsFolderSync = true
    }

    func expiredSegments(_ retention: AuditRetention, at now: Date) throws(AccessError) -> AuditSegments.Expired? {
        try segments.expired(retention, at: now, currentBytes: Int(length))
    }

    /// Deletes segments. A segment that cannot be deleted is tried again with the next ones.
    mutating func delete(_ expired: AuditSegments.Expired) {
        for number in expired.segments where unlink(segments.path(of: number)) == 0 || errno == ENOENT {
            segments.remove(number)
        }
    }

    private static func temporaryPath(for path: String) -> String { "\(path).new" }

    private static func open(_ path: String) throws(AccessError) -> Descriptor {
        let number = Glibc.open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .notSaved(path: path, reason: SocketError.message(for: errno)) }
        return Descriptor(owning: number)
    }

    private func write(_ bytes: Data) throws(AccessError) {
        do { try file.write(bytes, to: path) } catch { throw .notSaved(path: path, reason: error.reason) }
    }

    /// Truncates the file after the last valid line.
    private static func truncate(_ file: CInt, to length: off_t, path: String) throws(AccessError) {
        guard ftruncate(file, length) == 0, fdatasync(file) == 0 else {
            throw .notSaved(path: path, reason: SocketError.message(for: errno))
        }
    }
}

/// Reads the audit log on its own thread. The log may be long, and other work must not wait for it.
actor AuditLogReader {
    nonisolated var unownedExecutor: UnownedSerialExecutor { Self.thread.asUnownedSerialExecutor() }
    private static let thread = ThreadExecutor(named: "patchbay-audit")
    /// Number of lines that a verification reads before yielding to other readers.
    private static let linesPerTurn = 200

    private let folder: String

    init(_ folder: String) {
        self.folder = folder
        // Creates the thread and its descriptor now, while descriptors are available.
        _ = Self.thread
    }

    /// Verifies the hash chain through all segments. `head` is the position that the database records.
    func verify(endingAt head: AuditEntry.Head) async throws -> AuditVerification {
        var chain = AuditVerifier(endingAt: head)
        let segments = try AuditSegments(in: folder)
        var lines = AuditLineReader(segments, from: segments.full.first)
        while let line = try lines.next() {
            chain.append(line)
            if chain.lines.isMultiple(of: Self.linesPerTurn) { await Task.yield() }
        }
        return chain.report
    }

    /// Returns complete lines only; another thread may be writing the last one.
    func lines(after number: Int?, limit: Int) throws -> [Data] {
        guard let number else { return try AuditSegments.tail(limit, in: folder) }
        return try AuditSegments.lines(after: number, limit: limit, in: folder)
    }
}

/// Verifies audit log lines one after another: each holds the hash of the previous one.
struct AuditVerifier {
    /// Number of verified lines.
    private(set) var lines = 0
    private let end: AuditEntry.Head?
    private var last = AuditEntry.Head.none
    /// Number of the last entry before the first line, if an entry of the log must confirm its deletion.
    private var unconfirmed: Int?
    /// The first line, counted from 1, that was changed or is missing, and the reason.
    private var firstInvalid: (entry: Int, reason: String)?

    /// Begins a verification.
    ///
    /// - Parameter head: The log's position according to the database, if known.
    init(endingAt head: AuditEntry.Head?) { end = head }

    mutating func append(_ text: Data) {
        lines += 1
        guard firstInvalid == nil, let fault = fault(in: text) else { return }
        firstInvalid = (lines, fault)
    }

    var report: AuditVerification {
        var firstInvalid = firstInvalid
        if let unconfirmed {
            firstInvalid = (1, "this is line number \(unconfirmed + 1), and 1 is missing")
        }
        if firstInvalid == nil, let end, last.number < end.number {
            firstInvalid = (lines + 1, "the log ends before this line, and \(end.number) lines were written")
        }
        return AuditVerification(
            entries: lines,
            firstInvalidEntry: firstInvalid?.entry,
            reason: firstInvalid?.reason
        )
    }

    private mutating func fault(in text: Data) -> String? {
        guard let line = try? JSONCoding.decoder().decode(AuditEntry.self, from: text) else {
            return "this is not an audit log line"
        }
        if lines == 1, line.number > 1 {
            last = AuditEntry.Head(number: line.number - 1, hash: line.previousHash)
            unconfirmed = last.number
        }
        if let through = line.event.through, line.event.action == .pruned, let first = unconfirmed, through >= first {
            unconfirmed = nil
        }
        guard line.number == last.number + 1 else {
            return "this is line number \(line.number), and \(last.number + 1) is missing"
        }
        guard line.previousHash == last.hash else {
            return "the hash of the previous line does not match: one of the two lines was changed"
        }
        guard (try? line.encoded().text) == text else { return "this line was changed" }
        last = AuditEntry.Head(number: line.number, hash: AuditEntry.hash(of: text))
        if let end, end.number == last.number, end != last { return "this is not the line that was written here" }
        return nil
    }
}
