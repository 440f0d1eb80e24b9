import FoundationEssentials
import Glibc
import SystemIO

/// Reads the lines of one file of the log from the beginning. Memory use is bounded by the longest line.
struct AuditFileReader: ~Copyable {
    private static let piece = 128 * 1_024

    private let path: String
    private let file: Descriptor
    private var lines = LineReader()
    private var buffer = [UInt8](repeating: 0, count: piece)

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
    mutating func next() throws(AccessError) -> ArraySlice<UInt8>? {
        while true {
            while let line = lines.next() { if !line.isEmpty { return line } }
            let count = read(file.number, &buffer, buffer.count)
            if count == 0 { return nil }
            if count > 0 {
                lines.append(buffer[..<count])
            } else if errno != EINTR {
                throw .notRead(path: path, reason: SocketError.message(for: errno))
            }
        }
    }
}

/// Reads the lines of the whole audit log, segment by segment. The log may grow meanwhile.
struct AuditLineReader: ~Copyable {
    private let segments: AuditSegments
    private var waiting: ArraySlice<Int>
    private var last: Int
    private var isCurrent = false
    private var reader: AuditFileReader?

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
            if let line = try reader?.next() { return Data(line) }
            reader = nil
        }
        return nil
    }

    /// Opens the next file when the current one is read to its end.
    private mutating func prepare() throws(AccessError) -> Bool {
        if reader != nil { return true }
        if isCurrent { return false }
        if let number = waiting.popFirst() {
            reader = try AuditFileReader(segments.path(of: number))
            return true
        }
        let current = try AuditFileReader(segments.current)
        // `audit.jsonl` may have become a full segment since. Then `current` is its successor, and the new segment is
        // read first.
        if access(segments.path(of: last + 1), F_OK) == 0 {
            last += 1
            reader = try AuditFileReader(segments.path(of: last))
        } else {
            isCurrent = true
            reader = consume current
        }
        return true
    }
}
