/// A token whose line ended before its 64 digits: the next line may have the rest.
struct WrappedToken {
    enum Step {
        /// The character may be a part of the token.
        case held
        /// The character stands between the lines.
        case passed
        /// The character is not part of the digits.
        case ended
    }

    /// The number of digits that are the middle of a token, as in no other word of a log.
    private static let middleLength = 16
    /// The maximum number of held bytes, most of which are control sequences then.
    private static let heldLimit = 4_096

    private let token: PartialToken
    private(set) var digits: [UInt8] = []
    /// The bytes of the stream that may be a part of the token.
    private(set) var held: [UInt8] = []
    /// The control sequences among them, in UTF-16 each with one NUL byte.
    private(set) var controls: [UInt8] = []
    private var isAfterControl = false

    init(of token: PartialToken) { self.token = token }

    /// True if the mark is not written yet.
    var isFirst: Bool { !token.isRemoved }

    mutating func append(_ character: UInt8, _ raw: some Collection<UInt8>) -> Step {
        if digits.isEmpty, [0, 0x09, 0x0A, 0x0D, 0x20].contains(character) { return .passed }
        guard held.count < Self.heldLimit, character == 0 || character.isHexadecimal else { return .ended }
        if character != 0 {
            guard digits.count < SessionURL.tokenLength else { return .ended }
            digits.append(character)
        } else if isAfterControl {
            controls += raw
        }
        isAfterControl = false
        held += raw
        return .held
    }

    /// Holds a control sequence within the digits. Returns false if it stands before them.
    mutating func append(control raw: some Collection<UInt8>) -> Bool {
        guard !digits.isEmpty, held.count < Self.heldLimit else { return false }
        held += raw
        controls += raw
        isAfterControl = true
        return true
    }

    /// Returns the token with the digits of this line; nil if they do not continue it.
    func whole(before next: UInt8?) -> PartialToken? {
        if let next, token.match.marker.isOfToken(next) { return nil }
        let (count, length) = (token.bytes.count + digits.count, SessionURL.tokenLength)
        guard !digits.isEmpty, count == length || count < length && digits.count >= Self.middleLength else {
            return nil
        }
        return token.continued(with: digits)
    }
}
