import Glibc

/// Splits a byte stream into lines.
///
/// Skips empty lines and the heartbeats of MCP's Swift SDK, twelve bytes without a line break. A line over the size
/// limit ends the stream, because the following bytes cannot be assigned.
package struct LineDecoder: Sendable {
    package enum Event: Equatable, Sendable {
        /// A line without its line break.
        case line(ArraySlice<UInt8>)
        case tooLong
    }

    /// Four bytes that no JSON text begins with. Eight arbitrary bytes of a timestamp follow.
    private static let heartbeat: [UInt8] = [0xF0, 0x9F, 0x92, 0x93]
    private static let heartbeatLength = 12
    /// The limit of consumed bytes in the buffer before they are removed.
    private static let slack = 64 * 1_024

    private let limit: Int
    private var bytes: [UInt8] = []
    /// The start of the current line, and the position up to which no line break was found.
    private var start = 0
    private var scanned = 0

    /// Creates a decoder.
    ///
    /// - Parameter limit: The size limit of one line in bytes.
    package init(limit: Int) { self.limit = limit }

    /// The number of bytes of the incomplete line.
    package var partialCount: Int { bytes.count - start }

    /// Indicates whether the buffer contains an incomplete line.
    package var hasPartialLine: Bool { start < bytes.count }

    package mutating func append(_ more: [UInt8]) {
        if start == bytes.count || start > Self.slack {
            bytes.removeFirst(start)
            scanned -= start
            start = 0
        }
        bytes += more
    }

    /// Returns the next complete line; nil if more bytes are needed.
    package mutating func next() -> Event? {
        while hasPartialLine {
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

    /// Returns the bytes after the last line break at the end of the stream.
    package mutating func finish() -> ArraySlice<UInt8> {
        defer { begin(at: bytes.count) }
        return Self.trimmed(bytes[start...])
    }

    /// Finds the next line break in the bytes that have not been scanned.
    private func endOfLine() -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let end = memchr(base + scanned, 0x0A, bytes.count - scanned) else {
                return nil
            }
            return UnsafeRawPointer(end) - base
        }
    }

    private mutating func begin(at position: Int) {
        start = position
        scanned = position
    }

    /// Removes surrounding whitespace and carriage returns.
    private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0D]
        let line = line.drop { blanks.contains($0) }
        guard let last = line.lastIndex(where: { !blanks.contains($0) }) else { return [] }
        return line[...last]
    }
}
