/// How much of an HTTP/1 request line has arrived.
package enum RequestStage: Comparable, Sendable {
    /// Nothing came, or nothing but blanks.
    case silent
    /// It may become a request line, as most words may.
    case possible
    /// It begins with the name of a usual method, or with a part of one.
    case likely
    /// It is a request line whose end is missing.
    case begun
}

/// Reads the first line of a connection as its bytes arrive, and decides whether it is an HTTP/1 request line
/// (RFC 9112, section 3).
///
/// It keeps positions and no bytes, and examines each byte once.
struct RequestLine: Hashable, Sendable {
    enum Outcome {
        /// Whatever follows, it is something else: TLS, an SSH banner, a binary protocol.
        case other
        case unfinished(RequestStage)
        /// Meant as a request line, and not written as RFC 9112 wants it: two servers could read two things.
        case malformed
        /// Where the target is, which HTTP/1 it is, and where the next line begins.
        case read(target: Range<Int>, minor: UInt8, end: Int)
    }

    private enum Part { case leading, method, rest }

    /// Those that browsers send without asking first, and those that everybody knows.
    private static let methods = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
    ].map { Array($0.utf8) }

    private var part = Part.leading
    /// How many bytes were examined.
    private var examined = 0
    private var start = 0
    private var wordStart = 0
    private var targetStart: Int?
    private var isUsualMethod = false
    private var hasVersion = false
    /// The target begins with a slash, as the target of every request to an origin server does.
    private(set) var hasPath = false

    /// - Parameter bytes: Everything that arrived on the connection, the bytes of earlier calls included.
    /// - Returns: What the line is, as far as the bytes tell.
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
                if byte == .lineFeed { return judge(bytes, end: examined) }
                guard take(byte, bytes) else { return .other }
            }
            examined += 1
        }
        return .unfinished(stage(bytes))
    }

    /// Takes in one byte after the method.
    ///
    /// - Returns: Whether the line can still be a request line. A control character before the version rules it out.
    private mutating func take(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer) -> Bool {
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

    private func stage(_ bytes: UnsafeRawBufferPointer) -> RequestStage {
        switch part {
        case .leading: return bytes.isEmpty ? .silent : .possible
        case .method: return Self.methods.contains { $0.starts(with: bytes[start...]) } ? .likely : .possible
        case .rest:
            if hasVersion || isUsualMethod && hasPath { return .begun }
            return isUsualMethod ? .likely : .possible
        }
    }

    private func judge(_ bytes: UnsafeRawBufferPointer, end: Int) -> Outcome {
        guard hasVersion else { return .other }
        let line = bytes[start..<end]
        if !isUsualMethod {
            // A word that no server knows as a method is a request's only where the last word is a version of HTTP/1.
            let last = line.split(whereSeparator: \.isBlank).last
            guard let last, last.count == 8, last.begins(with: "HTTP/1.") else { return .other }
        }
        let parts = line.dropLast().split(separator: .space, maxSplits: 3, omittingEmptySubsequences: false)
        guard start == 0, line.last == .carriageReturn, parts.count == 3, !parts[1].isEmpty,
            parts[1].allSatisfy(\.isVisible), parts[2].count == 8, parts[2].starts(with: "HTTP/1.".utf8),
            let minor = parts[2].last, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(minor)
        else { return .malformed }
        return .read(target: parts[1].startIndex..<parts[1].endIndex, minor: minor - UInt8(ascii: "0"), end: end + 1)
    }
}

extension UInt8 {
    static let space = UInt8(ascii: " ")
    static let tab = UInt8(ascii: "\t")
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")

    /// What lenient servers take for a space: SP, HTAB, VT, FF and a bare CR (RFC 9112, section 3).
    fileprivate var isBlank: Bool { self == .space || (0x09...0x0D).contains(self) && self != .lineFeed }

    /// VCHAR or obs-text: what may stand in a target.
    fileprivate var isVisible: Bool { self > 0x20 && self != 0x7F }

    /// tchar (RFC 9110, section 5.6.2).
    var isTokenByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }
}

extension Collection<UInt8> {
    /// Whether it begins with a word of ASCII, in upper or lower case.
    fileprivate func begins(with word: StaticString) -> Bool {
        guard count >= word.utf8CodeUnitCount else { return false }
        return prefix(word.utf8CodeUnitCount).elementsEqual(
            UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        ) { ((0x61...0x7A).contains($0) ? $0 - 0x20 : $0) == $1 }
    }
}
