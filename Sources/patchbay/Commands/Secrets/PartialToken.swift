/// The part of a session token that has been read.
struct PartialToken {
    /// The maximum stored length of a token. Longer tokens are removed completely but not reported.
    private static let limit = 4_096

    /// The number of characters from which a word with a digit is a token, also in the next line.
    static let longLength = 16

    let match: TokenMarkerSearch.Match
    private(set) var bytes: [UInt8] = []
    /// The bytes of the stream while the word may not be a token.
    private(set) var held: [UInt8] = []
    /// The control sequences among them, which stay when the token is removed.
    private(set) var controls: [UInt8] = []
    /// The bytes after the last character that are no part of the token, unless another character follows.
    private(set) var insertion: [UInt8] = []
    /// The beginning of an inserted character of several bytes.
    private var partialInsertion: [UInt8] = []
    /// True if a control sequence or an inserted character occurred in or after the token.
    private var isInterrupted = false
    /// True if the mark is written in place of the token.
    var isRemoved = false

    init(_ match: TokenMarkerSearch.Match) { self.match = match }

    /// `[redacted]`, in the encoding of the text around it.
    var mark: [UInt8] {
        let mark = SessionTokenFilter.mark
        return match.isWide ? Array(mark.map { [$0] }.joined(separator: [0])) : mark
    }

    /// True if the word is a token, whatever follows. So is a word with more control sequences than can be held.
    var isCertain: Bool {
        held.count > Self.limit || bytes.count >= match.marker.certainLength || bytes.count >= leastLength && hasDigit
    }

    private var leastLength: Int { match.isInNextLine ? Self.longLength : match.marker.leastLength }

    /// Returns whether the word is a token, or the beginning of one whose rest is in the next line. `name="` is a parameter of
    /// an authentication challenge (RFC 9110, section 11.2), and `Optional(` is a function.
    func isToken(before next: UInt8?) -> Bool {
        let isName = bytes.last == UInt8(ascii: "=") && next == UInt8(ascii: "\"") || next == UInt8(ascii: "(")
        let isLong = bytes.count >= leastLength && !match.isInNextLine
        let isCut = next == UInt8(ascii: "\n") || next == UInt8(ascii: "\r")
        return isRemoved || isLong && !isName || isCut && mayContinue && hasDigit
    }

    /// Returns whether the word may stand between the marker and the token: `value` in `"value":"`, or `b` in `b'`.
    func isName(before next: UInt8?) -> Bool {
        guard let next, match.marker.hasNames, !match.isAfterName else { return false }
        return next == UInt8(ascii: "(")
            || bytes.count < match.marker.leastLength && "\"'=:>".utf8.contains(next)
    }

    private var hasDigit: Bool { bytes.contains { (0x30...0x39).contains($0) } }

    var isHexadecimal: Bool { bytes.allSatisfy(\.isHexadecimal) }
    private var isComplete: Bool { bytes.count == SessionURL.tokenLength && isHexadecimal }
    /// True if the next line may have the rest.
    var mayContinue: Bool {
        if isHexadecimal { return bytes.count < SessionURL.tokenLength }
        // A JSON Web Token begins with `{"` in base64 (RFC 7519, section 3.1).
        let isJSON = "eyJ".utf8.starts(with: bytes.prefix(3))
        return match.marker.hasAnyCharacter && (isJSON || bytes.count >= Self.longLength)
    }

    /// The session, if the token is complete and in a URL.
    var session: SessionURL? {
        guard isComplete, let origin = match.origin else { return nil }
        return SessionURL(origin: origin, token: Secret(String(decoding: bytes, as: UTF8.self)))
    }

    /// Reads a character, and the bytes of the stream that stand for it.
    ///
    /// - Returns: False if the character does not belong to the token.
    mutating func append(_ byte: UInt8, _ raw: some Collection<UInt8>) -> Bool {
        // A token in base64 is percent-encoded in a URL.
        let isEncoded = raw.first == UInt8(ascii: "%") && (byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/"))
        if partialInsertion.isEmpty, match.marker.isOfToken(byte) || isEncoded {
            // After a complete token and an interruption, the next text does not belong to the token.
            if isComplete, isInterrupted { return false }
            if !isRemoved { held += insertion + raw }
            insertion = []
            isInterrupted = false
            if bytes.count <= Self.limit { bytes.append(byte) }
            return true
        }
        let begun = partialInsertion + [byte]
        guard let whole = match.marker.insertions.first(where: { $0.starts(with: begun) }) else { return false }
        guard insertion.count < Self.limit else { return false }
        insertion += raw
        partialInsertion = whole.count == begun.count ? [] : begun
        // In UTF-16, each character has one NUL byte.
        if !(match.isWide && insertion == [0]) { isInterrupted = true }
        return true
    }

    /// Reads bytes of a control sequence.
    ///
    /// - Returns: The bytes to pass on now.
    mutating func append(control raw: some Collection<UInt8>) -> [UInt8] {
        isInterrupted = true
        let bytes = takeInsertion() + raw
        if isRemoved { return bytes }
        held += bytes
        // In UTF-16, the NUL byte before the sequence belongs to the mark or to the sequence.
        controls += match.isWide ? bytes : Array(raw)
        return []
    }

    /// Adds the characters of another line.
    func continued(with characters: [UInt8]) -> PartialToken {
        var whole = self
        if whole.bytes.count <= Self.limit { whole.bytes += characters }
        whole.isRemoved = true
        return whole
    }

    /// Returns the inserted bytes after the last character.
    private mutating func takeInsertion() -> [UInt8] {
        defer { (insertion, partialInsertion) = ([], []) }
        return insertion
    }
}
