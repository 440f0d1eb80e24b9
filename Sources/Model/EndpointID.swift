/// The permanent ID of an endpoint: `[a-z0-9-]{1,40}`, built from the names of its app and its location.
///
/// In a team, the ID of an endpoint of another host ends with a dot and the name of the host: `shop-iphone.lab2`. Both
/// parts together are unique in the team. The broker of that host accepts both forms.
package struct EndpointID: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    /// The maximum length of the part before the host.
    package static let lengthLimit = 40

    /// Returns nil unless the text is a valid ID.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts[0].utf8.allSatisfy(Self.isAllowed), (1...Self.lengthLimit).contains(parts[0].utf8.count) else {
            return nil
        }
        if parts.count > 1, HostName(parts[1]) == nil { return nil }
        self.text = String(text)
    }

    /// Returns whether a byte may be in the ID or in the name of a host.
    static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
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

    /// True if the ID names a host.
    package var namesHost: Bool { text.utf8.contains(UInt8(ascii: ".")) }

    /// The host that the ID names; nil for an endpoint of this broker.
    package var host: HostName? {
        text.firstIndex(of: ".").flatMap { HostName(text[text.index(after: $0)...]) }
    }

    /// The ID on its own host, without the name of the host.
    package var onItsHost: EndpointID {
        text.firstIndex(of: ".").flatMap { EndpointID(text[..<$0]) } ?? self
    }

    /// Returns the ID of an endpoint of a host, as the other brokers of the team show it.
    package func on(_ host: HostName) -> EndpointID { EndpointID("\(onItsHost.text).\(host.text)") ?? self }

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
