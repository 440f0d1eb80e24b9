import Glibc

/// Splits a byte stream into lines. The caller reads the bytes.
package struct LineReader: Sendable {
    /// The limit of consumed bytes in the buffer before they are removed.
    private static let slack = 64 * 1_024

    private var bytes: [UInt8] = []
    /// The start of the current line, and the position up to which no line break was found.
    private var start = 0
    private var scanned = 0

    package init() {}

    /// The bytes after the last returned line.
    package var unread: ArraySlice<UInt8> { bytes[start...] }

    package mutating func append(_ more: some Collection<UInt8>) {
        if start == bytes.count || start > Self.slack {
            bytes.removeFirst(start)
            (start, scanned) = (0, scanned - start)
        }
        bytes += more
    }

    /// Returns the next line without its line break; nil if more bytes are needed.
    package mutating func next() -> ArraySlice<UInt8>? {
        let end = bytes.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress, let end = memchr(base + scanned, 0x0A, bytes.count - scanned) else {
                return nil
            }
            return UnsafeRawPointer(end) - base
        }
        guard let end else {
            scanned = bytes.count
            return nil
        }
        defer { skip(end + 1 - start) }
        return bytes[start..<end]
    }

    /// Returns the unread bytes at the end of the stream: a line without a line break, or nothing.
    package mutating func rest() -> ArraySlice<UInt8> {
        defer { skip(bytes.count - start) }
        return unread
    }

    /// Drops bytes of the current line.
    package mutating func skip(_ count: Int) {
        start += count
        scanned = start
    }
}
