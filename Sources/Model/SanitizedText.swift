/// Text from the network or from a phone that is safe to print and to log.
///
/// mDNS is unauthenticated. A name can contain terminal escapes, line breaks, bidirectional overrides (CVE-2021-42574)
/// or invisible characters. The initializer replaces each of these characters with U+FFFD, so the reader sees that
/// something was removed. Code that receives a `SanitizedText` may print `text` unchanged.
package struct SanitizedText: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The sanitized text, at most as long as the limit in the initializer.
    package let text: String

    /// The length of a DNS label in bytes of UTF-8 (RFC 6763, section 4.1.1).
    package static let nameLimit = 63

    /// Sanitizes received text.
    ///
    /// - Parameters:
    ///   - raw: The received text.
    ///   - limit: The maximum length in bytes of UTF-8. The text is truncated between characters.
    package init(_ raw: some StringProtocol, limit: Int = nameLimit) {
        // Most text is printable ASCII. The tables of Unicode properties are slow.
        if raw.utf8.count <= limit, raw.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
            text = String(raw)
            return
        }
        var kept = String.UnicodeScalarView()
        var bytes = 0
        for scalar in raw.unicodeScalars {
            let safe = Self.isSafe(scalar) ? scalar : "\u{FFFD}"
            bytes += UTF8.width(safe)
            guard bytes <= limit else { break }
            kept.append(safe)
        }
        text = String(kept)
    }

    package var description: String { text }
    package var isEmpty: Bool { text.isEmpty }

    package static func < (one: SanitizedText, other: SanitizedText) -> Bool { one.text < other.text }

    /// Returns whether a character is visible and has no effect on other characters.
    package static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        // Variation selectors are marks. Those without a glyph are "default ignorable".
        default: !scalar.properties.isDefaultIgnorableCodePoint || scalar == "\u{FE0F}"
        }
    }
}

extension SanitizedText: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self), limit: .max)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
