/// The first line of a connection, if it is the one of an HTTP/1 request (RFC 9112, section 3).
package enum RequestLine {
    /// How far one has come that is not whole yet.
    package enum Stage: Comparable, Sendable {
        /// Nothing came, or nothing but blanks.
        case silent
        /// It may become a request line, as most words may.
        case possible
        /// It begins as the name of a usual method does.
        case likely
        /// It is a request line whose end is missing.
        case begun
    }

    /// Whatever follows, it is something else: TLS, an SSH banner, a binary protocol.
    case other
    case unfinished(Stage)
    /// Meant as a request line, and not written as RFC 9112 wants it: two servers could read two things.
    case malformed
    /// The target, which HTTP/1 it is, and where the next line begins.
    case read(target: UnsafeRawBufferPointer, minor: UInt8, end: Int)

    /// Those that browsers send without asking first, and those that everybody knows.
    private static let methods = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
    ].map { Array($0.utf8) }

    init(_ bytes: UnsafeRawBufferPointer) {
        // A server may skip empty lines before a request (RFC 9112, section 2.2).
        guard let start = bytes.firstIndex(where: { !$0.isBlank && $0 != .lineFeed }) else {
            self = .unfinished(bytes.isEmpty ? .silent : .possible)
            return
        }
        let text = UnsafeRawBufferPointer(rebasing: bytes[start...])
        let methodEnd = text.firstIndex { !$0.isTokenByte } ?? text.count
        let method = text[..<methodEnd]
        if methodEnd == text.count {
            let isLikely = Self.methods.contains { $0.starts(with: method) }
            self = .unfinished(isLikely ? .likely : .possible)
            return
        }
        guard methodEnd > 0, text[methodEnd].isBlank else {
            self = .other
            return
        }
        let end = text.firstIndex(of: .lineFeed)
        let line = text[..<(end ?? text.count)]
        let version = line.split(whereSeparator: \.isBlank).dropFirst().first { $0.isVersion }?.startIndex
        let isUsual = Self.methods.contains { $0.elementsEqual(method) }
        // No browser puts such bytes into a target; after a word that nobody knows they are another protocol's.
        if !isUsual, let foreign = line.firstIndex(where: { !$0.isBlank && !$0.isVisible }),
            foreign < version ?? text.count
        {
            self = .other
            return
        }
        guard let end else {
            self = .unfinished(isUsual || version != nil ? .begun : .possible)
            return
        }
        // What an HTTP/2 client says first (RFC 9113, section 3.4); browsers speak it inside TLS only.
        guard version != nil, !line.elementsEqual("PRI * HTTP/2.0\r".utf8) else {
            self = .other
            return
        }
        let parts = line.dropLast().split(separator: .space, maxSplits: 3, omittingEmptySubsequences: false)
        guard start == 0, line.last == .carriageReturn, parts.count == 3, !parts[1].isEmpty,
            parts[1].allSatisfy(\.isVisible), parts[2].count == 8, parts[2].starts(with: "HTTP/1.".utf8),
            let minor = parts[2].last, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(minor)
        else {
            self = .malformed
            return
        }
        self = .read(
            target: UnsafeRawBufferPointer(rebasing: parts[1]),
            minor: minor - UInt8(ascii: "0"),
            end: end + 1
        )
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

extension Sequence<UInt8> {
    fileprivate var isVersion: Bool {
        prefix(5).map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }.elementsEqual("HTTP/".utf8)
    }
}
