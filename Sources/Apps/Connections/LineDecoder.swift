import SystemIO

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
    private let limit: Int
    private var lines = LineReader()

    /// Creates a decoder.
    ///
    /// - Parameter limit: The size limit of one line in bytes.
    package init(limit: Int) { self.limit = limit }

    /// The number of bytes of the incomplete line.
    package var partialCount: Int { lines.unread.count }

    package mutating func append(_ more: [UInt8]) { lines.append(more) }

    /// Returns the next complete line; nil if more bytes are needed.
    package mutating func next() -> Event? {
        while partialCount > 0 {
            if lines.unread.starts(with: Self.heartbeat.prefix(partialCount)) {
                guard partialCount >= Self.heartbeatLength else { return nil }
                lines.skip(Self.heartbeatLength)
                continue
            }
            guard let line = lines.next().map(Self.trimmed) else { return partialCount > limit ? .tooLong : nil }
            if line.count > limit { return .tooLong }
            if !line.isEmpty { return .line(line) }
        }
        return nil
    }

    /// Returns the bytes after the last line break at the end of the stream.
    package mutating func finish() -> ArraySlice<UInt8> { Self.trimmed(lines.rest()) }

    /// Removes surrounding whitespace and carriage returns.
    private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0D]
        let line = line.drop { blanks.contains($0) }
        guard let last = line.lastIndex(where: { !blanks.contains($0) }) else { return [] }
        return line[...last]
    }
}
