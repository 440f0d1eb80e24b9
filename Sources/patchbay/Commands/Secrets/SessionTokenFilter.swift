import Model

/// Takes AppReveal's session tokens out of a stream of bytes, and leaves every other byte where and when it was.
///
/// AppReveal writes `http://127.0.0.1:<port>/?appreveal_session_token=<hex>` into the app's log; the words around it differ by
/// platform and version, so they do not count. The token is told by what stands before it, so that nothing is ever held back:
/// each byte is passed on at once, and those of a token are left out, with one mark in their place. Every
/// `appreveal_session_token=` is treated so; a token is found where an http or https URL has 64 hexadecimal digits there.
///
/// Colours (ECMA-48 control sequences) may stand anywhere in between; they are passed on and not counted.
struct SessionTokenFilter {
    static let mark = Array("[redacted]".utf8)

    private static let marker = Array("appreveal_session_token=".utf8)
    /// The schemes of a URL, and the ports that it means where it names none (RFC 9110, section 4.2).
    private static let schemes: [(text: String, port: UInt16)] = [("http://", 80), ("https://", 443)]
    /// AppReveal's tokens: 32 bytes in hexadecimal.
    private static let tokenLength = 64
    /// No longer one is kept; all of it is left out.
    private static let tokenLimit = 4_096
    /// As much of a line as is looked at.
    private static let lineLimit = 512
    /// For each length of a part of the marker that was seen, the longest shorter one that it ends with (Knuth, Morris, Pratt).
    private static let fallbacks = marker.indices.map { length in
        (0..<max(1, length)).last { marker.prefix(length).suffix($0).elementsEqual(marker.prefix($0)) } ?? 0
    }

    private enum Escape {
        case none
        /// After ESC.
        case begun
        /// After `ESC [`, up to its last byte.
        case sequence
    }

    /// What is visible of the line so far, or its end.
    private var line: [UInt8] = []
    /// How much of the marker was seen.
    private var matched = 0
    private var escape = Escape.none
    /// The token so far; nil outside of one.
    private var token: [UInt8]?
    /// Whether a control sequence came within or behind it.
    private var isInterrupted = false
    private var found: [SessionURL] = []
    /// How many tokens were left out.
    private(set) var redactions = 0

    /// Takes the next bytes of the stream.
    ///
    /// - Returns: The bytes to pass on, and the tokens that ended in these.
    mutating func feed(_ bytes: some Collection<UInt8>) -> (passed: [UInt8], found: [SessionURL]) {
        var passed: [UInt8] = []
        passed.reserveCapacity(bytes.count + Self.mark.count)
        for byte in bytes { take(byte, &passed) }
        return (passed, takeFound())
    }

    /// The stream has ended. Nothing is left to pass on.
    mutating func finish() -> [SessionURL] {
        endToken()
        return takeFound()
    }

    private mutating func takeFound() -> [SessionURL] {
        defer { found = [] }
        return found
    }

    private mutating func take(_ byte: UInt8, _ passed: inout [UInt8]) {
        if byte == 0x1B {
            escape = .begun
            return passed.append(byte)
        }
        switch escape {
        case .begun where byte == UInt8(ascii: "["):
            escape = .sequence
            isInterrupted = true
            return passed.append(byte)
        case .sequence where (0x20...0x7E).contains(byte):
            if byte >= 0x40 { escape = .none }
            return passed.append(byte)
        case .begun:
            // Another kind of escape (a hyperlink, a title): no token goes on behind it.
            endToken()
        case .none, .sequence: break
        }
        escape = .none
        takeText(byte, &passed)
    }

    private mutating func takeText(_ byte: UInt8, _ passed: inout [UInt8]) {
        if let count = token?.count {
            // What follows a whole token behind a change of colour is another text.
            if Self.isOfToken(byte), !(isInterrupted && count == Self.tokenLength) {
                if count == 0 {
                    passed += Self.mark
                    redactions += 1
                }
                isInterrupted = false
                if count <= Self.tokenLimit { token?.append(byte) }
                return
            }
            endToken()
        }
        passed.append(byte)
        follow(byte)
    }

    private mutating func follow(_ byte: UInt8) {
        if byte == UInt8(ascii: "\n") {
            line.removeAll(keepingCapacity: true)
            matched = 0
            return
        }
        if line.count == 2 * Self.lineLimit { line.removeFirst(Self.lineLimit) }
        line.append(byte)
        while matched > 0, byte != Self.marker[matched] { matched = Self.fallbacks[matched] }
        if byte == Self.marker[matched] { matched += 1 }
        if matched == Self.marker.count {
            matched = 0
            isInterrupted = false
            token = []
        }
    }

    private mutating func endToken() {
        guard let ended = token else { return }
        token = nil
        guard ended.count == Self.tokenLength, ended.allSatisfy(Self.isHexadecimal), let port = port() else { return }
        found.append(SessionURL(port: port, token: Secret(String(decoding: ended, as: UTF8.self))))
    }

    /// The port of the URL whose parameter this is; nil where it is none of a URL.
    private func port() -> UInt16? {
        let text = String(decoding: line.dropLast(Self.marker.count), as: UTF8.self)
        let word = text[(text.lastIndex { $0.isWhitespace }.map(text.index(after:)) ?? text.startIndex)...]
        let begins = Self.schemes.compactMap { scheme in word.ranges(of: scheme.text).last.map { ($0, scheme.port) } }
        guard word.last == "?" || word.last == "&",
            let (scheme, usual) = begins.max(by: { $0.0.lowerBound < $1.0.lowerBound })
        else { return nil }
        if let port = SessionTokenInput.port(in: word[scheme.lowerBound...]) { return port }
        let authority = word[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        let namesOne = authority.lastIndex(of: ":").map { !authority[$0...].contains("]") } ?? false
        return namesOne ? nil : usual
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    /// Hexadecimal digits, and whatever else a token of another version could be written in (RFC 3986's unreserved but for
    /// the full stop, which ends sentences; base64's padding; percent encoding).
    private static func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"),
            UInt8(ascii: "="), UInt8(ascii: "%"):
            true
        default: false
        }
    }
}

/// What AppReveal says at each launch of an app: the port it listens on, and the token of this session.
struct SessionURL: Sendable, Equatable {
    let port: UInt16
    let token: Secret
}
