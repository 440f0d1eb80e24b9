import Glibc

/// Takes a stream apart into its lines, however its bytes are cut.
///
/// Between two lines there may be heartbeats as MCP's Swift SDK sends them, twelve bytes without an end of line; empty lines
/// are nothing. A line that is longer than it may be ends it all: what comes after it belongs to nobody.
struct LineDecoder: Sendable {
    enum Event: Equatable, Sendable {
        /// Without its end.
        case line(ArraySlice<UInt8>)
        case tooLong
    }

    /// Four bytes that no JSON begins with, then eight of a time, which may look like anything.
    private static let heartbeat: [UInt8] = [0xF0, 0x9F, 0x92, 0x93]
    private static let heartbeatLength = 12
    /// Bytes of earlier lines that are kept at most before they are thrown away.
    private static let slack = 64 * 1_024

    private let limit: Int
    private var bytes: [UInt8] = []
    /// Where the line begins, and up to where it has no end.
    private var start = 0
    private var scanned = 0

    /// - Parameter limit: The most bytes of one line.
    init(limit: Int) { self.limit = limit }

    /// Whether part of a line has come.
    var isInside: Bool { start < bytes.count }

    mutating func append(_ more: [UInt8]) {
        if start == bytes.count || start > Self.slack {
            bytes.removeFirst(start)
            scanned -= start
            start = 0
        }
        bytes += more
    }

    /// What the bytes so far make complete; nil when more have to come.
    mutating func next() -> Event? {
        while isInside {
            if scanned == start, bytes[start...].starts(with: Self.heartbeat.prefix(bytes.count - start)) {
                guard bytes.count - start >= Self.heartbeatLength else { return nil }
                begin(at: start + Self.heartbeatLength)
                continue
            }
            guard let end = endOfLine() else {
                scanned = bytes.count
                return bytes.count - start > limit ? .tooLong : nil
            }
            let line = Self.trimmed(bytes[start..<end])
            begin(at: end + 1)
            if line.count > limit { return .tooLong }
            if !line.isEmpty { return .line(line) }
        }
        return nil
    }

    /// What stands after the last end of a line when the stream has ended.
    mutating func finish() -> ArraySlice<UInt8> {
        defer { begin(at: bytes.count) }
        return Self.trimmed(bytes[start...])
    }

    /// The next end of a line among the bytes that have not been looked at.
    private func endOfLine() -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let end = memchr(base + scanned, 0x0A, bytes.count - scanned) else {
                return nil
            }
            return UnsafeRawPointer(end) - base
        }
    }

    private mutating func begin(at place: Int) {
        start = place
        scanned = place
    }

    /// Without blanks and carriage returns around it.
    private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0D]
        let line = line.drop { blanks.contains($0) }
        guard let last = line.lastIndex(where: { !blanks.contains($0) }) else { return [] }
        return line[...last]
    }
}
