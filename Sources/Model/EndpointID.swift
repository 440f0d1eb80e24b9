/// The permanent ID of an endpoint: `[a-z0-9-]{1,40}`, built from the names of its app and its location.
package struct EndpointID: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    package static let lengthLimit = 40

    /// Returns nil unless the text is a valid ID.
    package init?(_ text: some StringProtocol) {
        let allowed = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
            default: false
            }
        }
        guard allowed, (1...Self.lengthLimit).contains(text.utf8.count) else { return nil }
        self.text = String(text)
    }

    /// Builds a readable ID from arbitrary names: the last component of a bundle identifier, then the location.
    ///
    /// - Parameters:
    ///   - app: A bundle identifier or any name.
    ///   - location: The location that distinguishes two instances of the same app. May be empty.
    ///   - attempt: 1 for the plain ID. Values above 1 append `-2`, `-3`, … when the plain ID is taken.
    package init(app: SanitizedText, location: String, attempt: Int = 1) {
        let suffix = attempt > 1 ? "-\(attempt)" : ""
        let room = Self.lengthLimit - suffix.utf8.count
        let words = [Self.slug(ofApp: app), Self.slug(location)]
        let joined = words.filter { !$0.isEmpty }.joined(separator: "-")
        var cut = String(joined.prefix(room))
        while cut.hasSuffix("-") { cut.removeLast() }
        text = (cut.isEmpty ? "endpoint" : cut) + suffix
    }

    package var description: String { text }

    package static func < (one: EndpointID, other: EndpointID) -> Bool { one.text < other.text }

    /// Returns the slug of the last component of a bundle identifier.
    package static func slug(ofApp app: SanitizedText) -> String {
        slug(app.text.split(separator: ".").last.map(String.init) ?? app.text)
    }

    /// Returns lower-case letters and digits, separated by single hyphens: `uni` for `Ünï 😀`.
    ///
    /// A letter with a mark loses the mark. Empty if the text then has neither letters nor digits in ASCII.
    package static func slug(_ text: String) -> String {
        var slug = ""
        for character in text.lowercased().flatMap(asciiLetters) {
            if character.isASCII, character.isLetter || character.isNumber {
                slug.append(character)
            } else if !slug.isEmpty, !slug.hasSuffix("-") {
                slug.append("-")
            }
        }
        while slug.hasSuffix("-") { slug.removeLast() }
        return slug
    }
}

extension EndpointID {
    /// Latin letters whose Unicode names do not begin with the letters that people type instead.
    private static let spellings: [Character: String] = ["ß": "ss", "þ": "th", "ð": "d", "œ": "oe", "ı": "i"]

    /// Returns the ASCII letters of a lower-case Latin letter, or another character unchanged.
    ///
    /// The Unicode name has the letter, with any number of marks: LATIN SMALL LETTER U WITH DIAERESIS AND MACRON.
    private static func asciiLetters(of character: Character) -> String {
        if character.isASCII { return String(character) }
        if let spelling = spellings[character] { return spelling }
        guard let scalar = character.unicodeScalars.first else { return "" }
        if scalar.isASCII { return String(scalar) }
        let prefix = "LATIN SMALL LETTER "
        guard let name = scalar.properties.name, name.hasPrefix(prefix) else { return String(character) }
        let letters = name.dropFirst(prefix.count).prefix { $0 != " " }
        return letters.count <= 2 ? letters.lowercased() : String(character)
    }
}

extension EndpointID: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let id = EndpointID(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\"\(SanitizedText(text))\" is not an endpoint id; `patchbay list` shows them"
            )
        }
        self = id
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
