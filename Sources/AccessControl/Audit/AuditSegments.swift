import FoundationEssentials
import Glibc
import Model
import SystemIO

/// The files of the audit log: `audit.jsonl`, which grows, and the full segments, of which `audit-1.jsonl` is the
/// oldest.
struct AuditSegments: Hashable, Sendable {
    let folder: String
    /// Numbers of the full segments in ascending order.
    private(set) var full: [Int]

    /// Lists the segments of a folder.
    ///
    /// - Throws: `AccessError.notRead`.
    init(in folder: String) throws(AccessError) {
        self.folder = folder
        do {
            full = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap(Self.number).sorted()
        } catch {
            throw .notRead(path: folder, reason: "its files cannot be listed")
        }
    }

    var current: String { "\(folder)/audit.jsonl" }

    func path(of number: Int) -> String { "\(folder)/audit-\(number).jsonl" }

    mutating func append(_ number: Int) { full.append(number) }

    mutating func remove(_ number: Int) { full.removeAll { $0 == number } }

    private static func number(of name: String) -> Int? {
        guard name.hasPrefix("audit-"), name.hasSuffix(".jsonl"),
            let number = Int(name.dropFirst(6).dropLast(6)), name == "audit-\(number).jsonl", number > 0
        else { return nil }
        return number
    }

    /// Returns the last lines of the log, oldest first.
    ///
    /// - Throws: `AccessError.notRead`.
    static func tail(_ limit: Int, in folder: String) throws(AccessError) -> [Data] {
        while true {
            let segments = try AuditSegments(in: folder)
            let current = try ReverseLineReader(segments.current)
            // Retries if `audit.jsonl` became a full segment meanwhile.
            guard try AuditSegments(in: folder) == segments else { continue }
            var lines = try current.lines(limit)
            for number in segments.full.reversed() {
                guard lines.count < limit else { break }
                lines = try ReverseLineReader(segments.path(of: number)).lines(limit - lines.count) + lines
            }
            return lines
        }
    }

    /// Returns the lines after a line number, oldest first.
    ///
    /// Line numbers begin with 1 and have no gaps.
    /// - Throws: `AccessError.notRead`.
    static func lines(after number: Int, limit: Int, in folder: String) throws(AccessError) -> [Data] {
        let segments = try AuditSegments(in: folder)
        var (first, start, isFound) = (1, segments.full.first, false)
        // Searches from the newest segment backwards, because most callers ask for the last lines.
        for segment in [nil] + segments.full.reversed().map(Optional.some) {
            guard let line = try firstLine(of: segment.map(segments.path) ?? segments.current),
                let found = try? JSONCoding.decoder().decode(AuditEntry.self, from: line).number, found <= number + 1
            else { continue }
            (first, start, isFound) = (found, segment, true)
            break
        }
        // The entries after the number were deleted: the oldest that is left is the first.
        if !isFound, let oldest = start, let line = try firstLine(of: segments.path(of: oldest)),
            let entry = try? JSONCoding.decoder().decode(AuditEntry.self, from: line)
        {
            first = entry.number
        }
        var reader = AuditLineReader(segments, from: start)
        while first <= number, try reader.next() != nil { first += 1 }
        var lines: [Data] = []
        while lines.count < limit, let line = try reader.next() { lines.append(line) }
        return lines
    }

    private static func firstLine(of path: String) throws(AccessError) -> Data? {
        var reader = try AuditFileReader(path)
        return try reader.next().map { Data($0) }
    }
}

/// Reads a file of lines backwards from its end.
struct ReverseLineReader: ~Copyable {
    private static let piece = 64 * 1_024

    private let path: String
    private let file: Descriptor
    /// Length of the file in bytes at the open.
    let length: Int

    /// Opens a file.
    ///
    /// - Throws: `AccessError.notRead`.
    init(_ path: String) throws(AccessError) {
        let number = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .notRead(path: path, reason: SocketError.message(for: errno)) }
        self.path = path
        file = Descriptor(owning: number)
        length = Int(lseek(number, 0, SEEK_END))
    }

    /// Returns the offset behind the last complete line.
    ///
    /// - Throws: `AccessError.notRead`.
    func completeLength() throws(AccessError) -> Int {
        var end = length
        while end > 0 {
            let start = max(0, end - Self.piece)
            let piece = try read(start..<end)
            if let newline = piece.lastIndex(of: UInt8(ascii: "\n")) { return start + newline + 1 }
            end = start
        }
        return 0
    }

    /// Returns the last complete lines, oldest first.
    ///
    /// - Throws: `AccessError.notRead`.
    func lines(_ limit: Int) throws(AccessError) -> [Data] {
        var start = try completeLength()
        var pieces: [[UInt8]] = []
        var ends = 0
        // Needs one more newline than lines: the newline before the first line.
        while start > 0, ends <= limit {
            let piece = try read(max(0, start - Self.piece)..<start)
            ends += piece.count { $0 == UInt8(ascii: "\n") }
            start -= piece.count
            pieces.append(piece)
        }
        let bytes = Array(pieces.reversed().joined())
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        // The first line may be incomplete.
        return lines.dropFirst(start > 0 ? 1 : 0).suffix(limit).map { Data($0) }
    }

    private func read(_ range: Range<Int>) throws(AccessError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        var count = 0
        while count < bytes.count {
            let added = bytes.withUnsafeMutableBytes { bytes in
                let room = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
                return pread(file.number, room.baseAddress, room.count, off_t(range.lowerBound + count))
            }
            if added < 0, errno == EINTR { continue }
            guard added > 0 else {
                throw .notRead(
                    path: path,
                    reason: added == 0 ? "it was truncated meanwhile" : SocketError.message(for: errno)
                )
            }
            count += added
        }
        return bytes
    }
}
