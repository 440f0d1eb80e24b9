import FoundationEssentials
import Glibc
import SystemIO

/// Reads the lines of one file from the beginning, in chunks. Memory use is bounded by the longest line.
struct LineReader: ~Copyable {
    private static let piece = 128 * 1_024

    private let path: String
    private let file: Descriptor
    private var buffer = [UInt8](repeating: 0, count: piece)
    /// Range of the buffer that is read from the file and not yet returned.
    private var unread = 0..<0

    /// Opens a file.
    ///
    /// - Throws: `AccessError.notRead`.
    init(_ path: String) throws(AccessError) {
        let number = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .notRead(path: path, reason: SocketError.message(for: errno)) }
        self.path = path
        file = Descriptor(owning: number)
    }

    /// Returns the next non-empty line without its newline; nil after the last one. Skips a last line without a
    /// newline.
    ///
    /// - Throws: `AccessError.notRead`.
    mutating func next() throws(AccessError) -> Data? {
        while let line = try advance() { if !line.isEmpty { return Data(buffer[line]) } }
        return nil
    }

    /// Skips the next non-empty line.
    ///
    /// - Returns: False after the last line.
    /// - Throws: `AccessError.notRead`.
    mutating func skip() throws(AccessError) -> Bool {
        while let line = try advance() { if !line.isEmpty { return true } }
        return false
    }

    private mutating func advance() throws(AccessError) -> Range<Int>? {
        var searched = unread.lowerBound
        while true {
            if let end = lineEnd(in: searched..<unread.upperBound) {
                defer { unread = end + 1..<unread.upperBound }
                return unread.lowerBound..<end
            }
            searched = unread.count
            guard try fill() else { return nil }
        }
    }

    private func lineEnd(in range: Range<Int>) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard !range.isEmpty, let base = bytes.baseAddress,
                let newline = memchr(base + range.lowerBound, CInt(UInt8(ascii: "\n")), range.count)
            else { return nil }
            return UnsafeRawPointer(newline) - base
        }
    }

    /// Moves the unread bytes to the front of the buffer and reads more behind them.
    ///
    /// - Returns: False at the end of the file.
    private mutating func fill() throws(AccessError) -> Bool {
        let unreadCount = unread.count
        if unread.lowerBound > 0 {
            let from = unread.lowerBound
            buffer.withUnsafeMutableBytes { $0.copyMemory(from: .init(rebasing: $0[from..<from + unreadCount])) }
        }
        if unreadCount == buffer.count { buffer += [UInt8](repeating: 0, count: buffer.count) }
        var count: Int
        repeat {
            count = buffer.withUnsafeMutableBytes { bytes in
                let free = UnsafeMutableRawBufferPointer(rebasing: bytes[unreadCount...])
                return read(file.number, free.baseAddress, free.count)
            }
        } while count < 0 && errno == EINTR
        guard count >= 0 else { throw .notRead(path: path, reason: SocketError.message(for: errno)) }
        unread = 0..<unreadCount + count
        return count > 0
    }
}

/// Reads the lines of the whole audit log, segment by segment. The log may grow meanwhile.
struct AuditLineReader: ~Copyable {
    private let segments: AuditSegments
    private var waiting: ArraySlice<Int>
    private var last: Int
    private var isCurrent = false
    private var reader: LineReader?

    /// Begins reading at a segment.
    ///
    /// - Parameters:
    ///   - segments: The current segments.
    ///   - first: Number of the full segment to begin with; nil begins with `audit.jsonl`.
    init(_ segments: AuditSegments, from first: Int?) {
        self.segments = segments
        waiting = segments.full.drop { number in first.map { number < $0 } ?? true }
        last = segments.full.last ?? 0
    }

    /// Returns the next line; nil after the last one.
    ///
    /// - Throws: `AccessError.notRead`.
    mutating func next() throws(AccessError) -> Data? {
        while try prepare() {
            if let line = try reader?.next() { return line }
            reader = nil
        }
        return nil
    }

    /// Skips the next line.
    ///
    /// - Returns: False after the last line.
    /// - Throws: `AccessError.notRead`.
    mutating func skip() throws(AccessError) -> Bool {
        while try prepare() {
            if try reader?.skip() == true { return true }
            reader = nil
        }
        return false
    }

    /// Opens the next file when the current one is read to its end.
    private mutating func prepare() throws(AccessError) -> Bool {
        if reader != nil { return true }
        if isCurrent { return false }
        if let number = waiting.popFirst() {
            reader = try LineReader(segments.path(of: number))
            return true
        }
        let current = try LineReader(segments.current)
        // `audit.jsonl` may have become a full segment since. Then `current` is its successor, and the new segment is
        // read first.
        if access(segments.path(of: last + 1), F_OK) == 0 {
            last += 1
            reader = try LineReader(segments.path(of: last))
        } else {
            isCurrent = true
            reader = consume current
        }
        return true
    }
}
