/// A text in a log after which a session token stands.
struct TokenMarker: Sendable {
    /// The text in lower case; it is found in any case.
    let text: [UInt8]
    /// The characters that may stand between the text and the token.
    private let separators: Set<UInt8>
    /// The separators of which at least one must stand there.
    private let assignments: Set<UInt8>
    /// Additional characters of a token.
    private let extras: Set<UInt8>
    /// True if a short name may stand between the text and the token.
    let hasNames: Bool
    /// The number of characters from which a word is certainly a token.
    let certainLength: Int
    /// The least number of characters of a token.
    let leastLength: Int
    /// The failure function of the Knuth-Morris-Pratt search.
    let failures: [Int]

    private init(
        _ text: String,
        separators: String,
        assignments: String,
        extras: String = "",
        hasNames: Bool = false,
        leastLength: Int = 1,
        certainLength: Int = 1
    ) {
        let bytes = Array(text.utf8)
        self.text = bytes
        self.separators = Set(separators.utf8)
        self.assignments = Set(assignments.utf8)
        self.extras = Set(extras.utf8)
        self.hasNames = hasNames
        (self.leastLength, self.certainLength) = (leastLength, certainLength)
        failures = bytes.indices.map { length in
            (0..<max(1, length)).last { bytes.prefix(length).suffix($0).elementsEqual(bytes.prefix($0)) } ?? 0
        }
    }

    /// The parameter of the URL that AppReveal logs, also as a member of a JSON object.
    static let parameter = TokenMarker("appreveal_session_token", separators: "=:\"'\\ \t", assignments: "=:")

    /// Every form of the header's name: also that of CGI (RFC 3875, section 4.1.18) and of an attribute of XML.
    private static let headers = ["x-appreveal-session", "x_appreveal_session", "x-appreveal-session\" value"].map {
        TokenMarker(
            $0,
            separators: "=:,\"'\\ \t[(>",
            assignments: "=:,>",
            extras: "+/",
            hasNames: true,
            leastLength: 8,
            certainLength: 32
        )
    }

    static let all =
        [parameter] + headers + [
            // `Authorization: Bearer b64token` (RFC 6750, section 2.1). The word is also used in sentences.
            TokenMarker(
                "bearer",
                separators: "=:,\"'\\ \t+[(",
                assignments: "=:, \t+\n",
                extras: "+/",
                leastLength: 16,
                certainLength: 32
            )
        ]

    /// True if a token has any character of base64 and full stops, as in a header.
    var hasAnyCharacter: Bool { !extras.isEmpty }

    /// Returns whether a character may stand between the text and the token, for example the hyphen of ` -> ` or ` - `.
    func isSeparator(_ byte: UInt8, after previous: UInt8) -> Bool {
        separators.contains(byte) || hasNames && byte == UInt8(ascii: "-") && " \t\n".utf8.contains(previous)
    }

    func isAssignment(_ byte: UInt8) -> Bool { assignments.contains(byte) }

    /// Returns true for the bytes of a token: hexadecimal digits and, for other versions, further URL characters.
    ///
    /// These are the unreserved characters of RFC 3986 except the full stop, base64 padding, and percent encoding.
    func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"),
            UInt8(ascii: "="), UInt8(ascii: "%"):
            true
        default: extras.contains(byte)
        }
    }

    /// The byte sequences within a token that do not end it: what a display or an encoding may insert. A token of three
    /// parts (RFC 7519) in a header has full stops.
    var insertions: [[UInt8]] { Self.invisible + (hasAnyCharacter ? [[UInt8(ascii: ".")]] : []) }

    /// NUL; U+00AD soft hyphen; U+200B, U+200C and U+200D; U+2060 word joiner; U+FEFF.
    private static let invisible: [[UInt8]] = [
        [0], [0xC2, 0xAD], [0xE2, 0x80, 0x8B], [0xE2, 0x80, 0x8C], [0xE2, 0x80, 0x8D], [0xE2, 0x81, 0xA0],
        [0xEF, 0xBB, 0xBF],
    ]
}

extension UInt8 {
    var isHexadecimal: Bool { hexadecimalValue != nil }

    /// The value of an ASCII hexadecimal digit; nil for any other byte.
    var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
