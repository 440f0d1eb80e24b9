import Model

/// The part of an HTTP/1 request line that has arrived.
package enum RequestLineStage: Comparable, Sendable {
    /// No bytes, or only blanks.
    case silent
    /// The bytes may still become a request line, as most words may.
    case possible
    /// The bytes begin with the name of a common method or a prefix of one.
    case likely
    /// An incomplete request line.
    case begun
}

/// Parses the first line of a connection incrementally and decides if it is an HTTP/1 request line (RFC 9112, section
/// 3).
///
/// The parser stores positions and no bytes, and examines each byte once.
struct RequestLineParser: Hashable, Sendable {
    enum Outcome {
        /// The line belongs to another protocol: TLS, an SSH banner, a binary protocol.
        case other
        case unfinished(RequestLineStage)
        /// A request line that violates RFC 9112: two servers could read two different lines.
        case malformed
        /// The range of the target, the minor version of HTTP/1, and the start of the next line.
        case read(target: Range<Int>, minor: UInt8, end: Int)
    }

    private enum Part { case leading, method, rest }

    /// The methods that browsers send without a preflight request, and the other common methods.
    private static let methods = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
    ].map { Array($0.utf8) }

    private var part = Part.leading
    /// The number of examined bytes.
    private var examined = 0
    private var start = 0
    private var wordStart = 0
    private var targetStart: Int?
    private var isUsualMethod = false
    private var hasVersion = false
    /// True if the target begins with a slash, as in every request to an origin server.
    private(set) var hasPath = false

    /// Parses the bytes that arrived since the last call.
    ///
    /// - Parameter bytes: Every byte received on the connection, including the bytes of earlier calls.
    /// - Returns: The result so far.
    mutating func read(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        while examined < bytes.count {
            let byte = bytes[examined]
            switch part {
            case .leading:
                // A server may skip empty lines before a request (RFC 9112, section 2.2).
                if !byte.isBlank, byte != .lineFeed {
                    start = examined
                    part = .method
                    continue
                }
            case .method:
                guard !byte.isTokenByte else { break }
                guard examined > start, byte.isBlank else { return .other }
                isUsualMethod = Self.methods.contains { $0.elementsEqual(bytes[start..<examined]) }
                part = .rest
                wordStart = examined + 1
            case .rest:
                if byte == .lineFeed { return parseLine(bytes, end: examined) }
                guard parse(byte, bytes) else { return .other }
            }
            examined += 1
        }
        return .unfinished(stage(bytes))
    }

    /// Parses one byte after the method.
    ///
    /// - Returns: True if the line can still be a request line. A control character before the version rules it out.
    private mutating func parse(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer) -> Bool {
        if byte.isBlank {
            wordStart = examined + 1
            return true
        }
        if targetStart == nil {
            targetStart = examined
            hasPath = byte == UInt8(ascii: "/")
        }
        guard !hasVersion else { return true }
        guard byte.isVisible else { return false }
        let word = bytes[wordStart...examined]
        switch isUsualMethod {
        case true where word.count == 5: hasVersion = word.begins(with: "HTTP/")
        case false where word.count == 7 && wordStart != targetStart: hasVersion = word.begins(with: "HTTP/1.")
        default: break
        }
        return true
    }

    private func stage(_ bytes: UnsafeRawBufferPointer) -> RequestLineStage {
        switch part {
        case .leading: return bytes.isEmpty ? .silent : .possible
        case .method: return Self.methods.contains { $0.starts(with: bytes[start...]) } ? .likely : .possible
        case .rest:
            if hasVersion || isUsualMethod && hasPath { return .begun }
            return isUsualMethod ? .likely : .possible
        }
    }

    /// Parses the complete line.
    private func parseLine(_ bytes: UnsafeRawBufferPointer, end: Int) -> Outcome {
        guard hasVersion else { return .other }
        let line = bytes[start..<end]
        if !isUsualMethod {
            // A line with an unknown method is a request line only if its last word is an HTTP/1 version.
            let last = line.split(whereSeparator: \.isBlank).last
            guard let last, last.count == 8, last.begins(with: "HTTP/1.") else { return .other }
        }
        let parts = line.dropLast().split(separator: .space, maxSplits: 3, omittingEmptySubsequences: false)
        guard start == 0, line.last == .carriageReturn, parts.count == 3, !parts[1].isEmpty,
            parts[1].allSatisfy(\.isVisible), parts[2].count == 8, parts[2].starts(with: "HTTP/1.".utf8),
            let minor = parts[2].last, minor.isDigit
        else { return .malformed }
        return .read(target: parts[1].startIndex..<parts[1].endIndex, minor: minor - UInt8(ascii: "0"), end: end + 1)
    }
}

extension UInt8 {
    static let space = UInt8(ascii: " ")
    static let tab = UInt8(ascii: "\t")
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")

    /// The bytes that lenient servers accept as a space: SP, HTAB, VT, FF and a bare CR (RFC 9112, section 3).
    fileprivate var isBlank: Bool { self == .space || (0x09...0x0D).contains(self) && self != .lineFeed }

    /// VCHAR or obs-text: the bytes allowed in a target.
    fileprivate var isVisible: Bool { self > 0x20 && self != 0x7F }
}

extension Collection<UInt8> {
    /// True if the bytes begin with an ASCII word, ignoring case.
    fileprivate func begins(with word: StaticString) -> Bool {
        guard count >= word.utf8CodeUnitCount else { return false }
        return prefix(word.utf8CodeUnitCount).elementsEqual(
            UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        ) { ((0x61...0x7A).contains($0) ? $0 - 0x20 : $0) == $1 }
    }
}
