/// The part of a session token that has been read.
struct PartialToken {
    /// The maximum stored length of a token. Longer tokens are removed completely but not reported.
    private static let limit = 4_096

    let match: TokenMarkerSearch.Match
    private(set) var bytes: [UInt8] = []
    /// The bytes of the stream while the word may not be a token.
    private(set) var held: [UInt8] = []
    /// The bytes after the last character that are no part of the token, unless another character follows.
    private(set) var insertion: [UInt8] = []
    /// The beginning of an inserted character of several bytes.
    private var partialInsertion: [UInt8] = []
    /// True if a control sequence or an inserted character occurred in or after the token.
    var isInterrupted = false
    /// True if the mark is written in place of the token.
    var isRemoved = false

    init(_ match: TokenMarkerSearch.Match) { self.match = match }

    /// `[redacted]`, in the encoding of the text around it.
    var mark: [UInt8] {
        let mark = SessionTokenFilter.mark
        return match.isWide ? Array(mark.map { [$0] }.joined(separator: [0])) : mark
    }

    /// True if the word is a token, whatever follows.
    var isCertain: Bool {
        let marker = match.marker
        return bytes.count >= marker.certainLength
            || bytes.count >= marker.leastLength && bytes.contains { (0x30...0x39).contains($0) }
    }

    /// Returns whether the word is a token. `name="` is a parameter of an authentication challenge (RFC 9110, section
    /// 11.2).
    func isToken(before next: UInt8?) -> Bool {
        let isParameter = bytes.last == UInt8(ascii: "=") && next == UInt8(ascii: "\"")
        return isRemoved || bytes.count >= match.marker.leastLength && !isParameter
    }

    private var isHexadecimal: Bool { bytes.allSatisfy(\.isHexadecimal) }
    private var isComplete: Bool { bytes.count == SessionTokenFilter.tokenLength && isHexadecimal }
    /// True if the next line may have the rest.
    var mayContinue: Bool { bytes.count < SessionTokenFilter.tokenLength && isHexadecimal }

    /// The session, if the token is complete and in a URL.
    var session: SessionURL? {
        guard isComplete, let origin = match.origin else { return nil }
        return SessionURL(origin: origin, token: Secret(String(decoding: bytes, as: UTF8.self)))
    }

    /// Returns false if the byte does not belong to the token.
    mutating func append(_ byte: UInt8) -> Bool {
        if partialInsertion.isEmpty, match.marker.isOfToken(byte) {
            // After a complete token and an interruption, the next text does not belong to the token.
            let endsHere = isInterrupted || match.isEncoded && byte == UInt8(ascii: "%")
            if isComplete, endsHere { return false }
            if !isRemoved { held += insertion + [byte] }
            insertion = []
            isInterrupted = false
            if bytes.count <= Self.limit { bytes.append(byte) }
            return true
        }
        let begun = partialInsertion + [byte]
        guard let whole = match.marker.insertions.first(where: { $0.starts(with: begun) }) else { return false }
        insertion.append(byte)
        partialInsertion = whole.count == begun.count ? [] : begun
        // In UTF-16, each character has one NUL byte.
        if !(match.isWide && insertion == [0]) { isInterrupted = true }
        return true
    }

    /// Adds the digits of another line.
    func continued(with digits: [UInt8]) -> PartialToken {
        var whole = self
        whole.bytes += digits
        whole.isRemoved = true
        return whole
    }

    /// Returns the inserted bytes after the last character, to be passed on now.
    mutating func takeInsertion() -> [UInt8] {
        defer { (insertion, partialInsertion) = ([], []) }
        return insertion
    }
}

/// A token whose line ended before its 64 digits: the next line may have the rest.
struct WrappedToken {
    enum Step {
        /// The byte may be a part of the token.
        case held
        /// The byte stands between the lines.
        case passed
        /// The byte is not part of the digits.
        case ended
    }

    /// The number of digits that are the middle of a token, as in no other word of a log.
    private static let middleLength = 16

    private let token: PartialToken
    /// The bytes of the stream that may be a part of the token.
    private(set) var run: [UInt8] = []

    init(of token: PartialToken) { self.token = token }

    /// True if no line before had a part of the token.
    var isFirst: Bool { token.bytes.isEmpty }

    private var digits: [UInt8] { run.filter { $0 != 0 } }

    mutating func append(_ byte: UInt8) -> Step {
        if byte.isHexadecimal {
            guard run.count < 2 * SessionTokenFilter.tokenLength else { return .ended }
            run.append(byte)
            return .held
        }
        guard !run.isEmpty else { return [0, 0x09, 0x0A, 0x0D, 0x20].contains(byte) ? .passed : .ended }
        guard byte == 0 else { return .ended }
        run.append(byte)
        return .held
    }

    /// Returns the token with the digits of this line; nil if they do not continue it.
    func whole(before next: UInt8?) -> PartialToken? {
        let (digits, length) = (digits, SessionTokenFilter.tokenLength)
        if let next, token.match.marker.isOfToken(next) { return nil }
        let count = token.bytes.count + digits.count
        guard !digits.isEmpty, count == length || count < length && digits.count >= Self.middleLength else {
            return nil
        }
        return token.continued(with: digits)
    }
}
