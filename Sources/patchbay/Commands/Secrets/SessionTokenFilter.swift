import Model

/// Removes AppReveal's session tokens from a byte stream and passes all other bytes through without delay.
///
/// AppReveal logs `http://127.0.0.1:<port>/?appreveal_session_token=<hex>`. The surrounding text differs by platform and
/// version and is ignored. The marker precedes the token, so no byte has to be held back. The token after every marker
/// is replaced by `[redacted]`. A token is reported only for an http or https URL with 64 hexadecimal digits.
///
/// ECMA-48 control sequences (colors) can occur anywhere; they are passed through and ignored by the matching.
struct SessionTokenFilter {
    static let mark = Array("[redacted]".utf8)

    private static let marker = Array("appreveal_session_token=".utf8)
    /// The URL schemes with their default ports (RFC 9110, section 4.2).
    private static let schemes: [(text: String, port: UInt16)] = [("http://", 80), ("https://", 443)]
    /// AppReveal's tokens: 32 bytes in hexadecimal.
    private static let tokenLength = 64
    /// The maximum stored length of a token. Longer tokens are removed completely but not reported.
    private static let tokenLimit = 4_096
    /// The number of bytes before the marker that are searched for the URL.
    private static let lineLimit = 512
    /// The failure function of the Knuth-Morris-Pratt search for the marker.
    private static let fallbacks = marker.indices.map { length in
        (0..<max(1, length)).last { marker.prefix(length).suffix($0).elementsEqual(marker.prefix($0)) } ?? 0
    }

    private enum Escape {
        case none
        /// After ESC.
        case begun
        /// After `ESC [`, up to the final byte.
        case sequence
    }

    /// The visible end of the current line.
    private var line: [UInt8] = []
    /// The number of matched bytes of the marker.
    private var matched = 0
    private var escape = Escape.none
    /// The bytes of the current token; nil outside of a token.
    private var token: [UInt8]?
    /// True if a control sequence occurred in or after the current token.
    private var isInterrupted = false
    private var found: [SessionURL] = []
    /// The number of removed tokens.
    private(set) var redactions = 0

    /// Processes the next bytes of the stream.
    ///
    /// - Returns: The bytes to write, and the sessions whose tokens ended in this input.
    mutating func feed(_ bytes: some Collection<UInt8>) -> (passed: [UInt8], found: [SessionURL]) {
        var passed: [UInt8] = []
        passed.reserveCapacity(bytes.count + Self.mark.count)
        for byte in bytes { process(byte, &passed) }
        return (passed, drainFound())
    }

    /// Ends the stream and returns the session of a token at its end.
    mutating func finish() -> [SessionURL] {
        endToken()
        return drainFound()
    }

    private mutating func drainFound() -> [SessionURL] {
        defer { found = [] }
        return found
    }

    private mutating func process(_ byte: UInt8, _ passed: inout [UInt8]) {
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
            // Any other escape sequence (hyperlink, title) ends the token.
            endToken()
        case .none, .sequence: break
        }
        escape = .none
        processText(byte, &passed)
    }

    private mutating func processText(_ byte: UInt8, _ passed: inout [UInt8]) {
        if let count = token?.count {
            // After a complete token and a control sequence, the next text does not belong to the token.
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
        matchMarker(byte)
    }

    private mutating func matchMarker(_ byte: UInt8) {
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
        guard let bytes = token else { return }
        token = nil
        guard bytes.count == Self.tokenLength, bytes.allSatisfy(Self.isHexadecimal), let port = port() else { return }
        found.append(SessionURL(port: port, token: Secret(String(decoding: bytes, as: UTF8.self))))
    }

    /// Returns the port of the URL that contains the marker; nil if the marker is not a parameter of a URL.
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

    /// Returns true for the bytes of a token: hexadecimal digits and, for other versions, further URL characters.
    ///
    /// These are the unreserved characters of RFC 3986 except the full stop, base64 padding, and percent encoding.
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

/// The port and the session token that AppReveal logs at each launch of an app.
struct SessionURL: Sendable, Equatable {
    let port: UInt16
    let token: Secret
}
