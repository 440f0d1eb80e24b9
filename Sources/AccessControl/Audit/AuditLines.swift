import FoundationEssentials
import Glibc
import SystemIO

/// Reads the lines of one file from its beginning, in pieces: the longest line bounds the memory.
struct LineReader: ~Copyable {
    private static let piece = 128 * 1_024

    private let path: String
    private let file: Descriptor
    private var buffer = [UInt8](repeating: 0, count: piece)
    /// What of the buffer was read from the file and not given out yet.
    private var unread = 0..<0

    /// - Throws: `AccessError.notRead`.
    init(_ path: String) throws(AccessError) {
        let number = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .notRead(path: path, reason: SocketError.words(for: errno)) }
        self.path = path
        file = Descriptor(owning: number)
    }

    /// The next line that is not empty, without its end; nil after the last one. A line that has no end yet is not given.
    ///
    /// - Throws: `AccessError.notRead`.
    mutating func next() throws(AccessError) -> Data? {
        while let line = try advance() { if !line.isEmpty { return Data(buffer[line]) } }
        return nil
    }

    /// Passes over the next line that is not empty.
    ///
    /// - Returns: False after the last one.
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
                let place = memchr(base + range.lowerBound, CInt(UInt8(ascii: "\n")), range.count)
            else { return nil }
            return UnsafeRawPointer(place) - base
        }
    }

    /// Moves what is unread to the front, and reads more behind it.
    ///
    /// - Returns: False at the end of the file.
    private mutating func fill() throws(AccessError) -> Bool {
        let kept = unread.count
        if unread.lowerBound > 0 {
            let from = unread.lowerBound
            buffer.withUnsafeMutableBytes { $0.copyMemory(from: .init(rebasing: $0[from..<from + kept])) }
        }
        if kept == buffer.count { buffer += [UInt8](repeating: 0, count: buffer.count) }
        var count: Int
        repeat {
            count = buffer.withUnsafeMutableBytes { bytes in
                let room = UnsafeMutableRawBufferPointer(rebasing: bytes[kept...])
                return read(file.number, room.baseAddress, room.count)
            }
        } while count < 0 && errno == EINTR
        guard count >= 0 else { throw .notRead(path: path, reason: SocketError.words(for: errno)) }
        unread = 0..<kept + count
        return count > 0
    }
}

/// Reads the lines of the whole audit log, one segment after the other, while it may grow.
struct AuditLines: ~Copyable {
    private let segments: AuditSegments
    private var waiting: ArraySlice<Int>
    private var last: Int
    private var isCurrent = false
    private var reader: LineReader?

    /// - Parameters:
    ///   - segments: As they are now.
    ///   - first: The full segment to begin with; nil begins with the file that grows.
    init(_ segments: AuditSegments, from first: Int?) {
        self.segments = segments
        waiting = segments.full.drop { number in first.map { number < $0 } ?? true }
        last = segments.full.last ?? 0
    }

    /// - Throws: `AccessError.notRead`.
    mutating func next() throws(AccessError) -> Data? {
        while try prepare() {
            if let line = try reader?.next() { return line }
            reader = nil
        }
        return nil
    }

    /// - Returns: False after the last line.
    /// - Throws: `AccessError.notRead`.
    mutating func skip() throws(AccessError) -> Bool {
        while try prepare() {
            if try reader?.skip() == true { return true }
            reader = nil
        }
        return false
    }

    /// Opens the next file where the one before is at its end.
    private mutating func prepare() throws(AccessError) -> Bool {
        if reader != nil { return true }
        if isCurrent { return false }
        if let number = waiting.popFirst() {
            reader = try LineReader(segments.path(of: number))
            return true
        }
        let current = try LineReader(segments.current)
        // The file that grew may have become a full one since: then its successor was opened.
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
