/// A token whose line ended before its 64 digits, or after a word that may be longer: the next line may have the rest.
struct WrappedToken {
    enum Step {
        /// The character may be a part of the token.
        case held
        /// The character stands between the lines.
        case passed
        /// The character is not part of the token.
        case ended
    }

    /// The maximum number of held bytes, most of which are control sequences then.
    private static let heldLimit = 4_096

    private let token: PartialToken
    private(set) var characters: [UInt8] = []
    /// True if all characters of the token are hexadecimal digits.
    private var isHexadecimal: Bool
    /// The bytes of the stream that may be a part of the token.
    private(set) var held: [UInt8] = []
    /// The control sequences among them, in UTF-16 each with one NUL byte.
    private(set) var controls: [UInt8] = []
    private var isAfterControl = false

    init(of token: PartialToken) {
        self.token = token
        isHexadecimal = token.isHexadecimal
    }

    /// The text before a token whose characters all stand in the next lines; nil if this line has some of them.
    var match: TokenMarkerSearch.Match? { token.bytes.isEmpty && characters.isEmpty ? token.match : nil }

    /// True if the mark is not written yet.
    var isFirst: Bool { !token.isRemoved }

    mutating func append(_ character: UInt8, _ raw: some Collection<UInt8>) -> Step {
        if characters.isEmpty, Self.indentations.contains(character) { return .passed }
        guard held.count < Self.heldLimit, character == 0 || isPart(character) else { return .ended }
        if character != 0 {
            characters.append(character)
            if !character.isHexadecimal { isHexadecimal = false }
        } else if isAfterControl {
            controls += raw
        }
        isAfterControl = false
        held += raw
        return .held
    }

    /// NUL in UTF-16, line breaks, spaces, and the marks of a quotation or a table.
    private static let indentations = Set("\0\t\n\r >|".utf8)

    /// Returns whether a character is a hexadecimal digit or belongs to base64url (RFC 7515, section 2).
    private func isPart(_ character: UInt8) -> Bool {
        if character.isHexadecimal { return true }
        guard token.match.marker.hasAnyCharacter else { return false }
        switch character {
        case UInt8(ascii: "g")...UInt8(ascii: "z"), UInt8(ascii: "G")...UInt8(ascii: "Z"), UInt8(ascii: "_"):
            return true
        // A list begins with a hyphen, and a sentence ends with a full stop.
        case UInt8(ascii: "-"): return match == nil
        case UInt8(ascii: "."): return !isHexadecimal
        default: return false
        }
    }

    /// Holds a control sequence within the characters. Returns false if it stands before them.
    mutating func append(control raw: some Collection<UInt8>) -> Bool {
        guard !characters.isEmpty, held.count < Self.heldLimit else { return false }
        held += raw
        controls += raw
        isAfterControl = true
        return true
    }

    /// Returns the token with the characters of this line; nil if they do not continue it.
    func whole(before next: UInt8?) -> PartialToken? {
        if let next, token.match.marker.isOfToken(next) { return nil }
        let isLong = characters.count >= PartialToken.longLength
        if isHexadecimal {
            let (count, length) = (token.bytes.count + characters.count, SessionURL.tokenLength)
            guard !characters.isEmpty, count == length || count < length && isLong else { return nil }
        } else {
            guard isLong, isMixed, next != UInt8(ascii: ":"), next != UInt8(ascii: "(") else { return nil }
        }
        return token.continued(with: characters)
    }

    /// True if the characters are those of base64, as in few words of a log.
    private var isMixed: Bool {
        characters.contains { (0x30...0x39).contains($0) } && characters.contains { (0x41...0x5A).contains($0) }
            && characters.contains { (0x61...0x7A).contains($0) }
    }
}
