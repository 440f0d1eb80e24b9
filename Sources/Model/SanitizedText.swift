/// Text that came from the network or from a phone, made safe to show and to log.
///
/// mDNS is unauthenticated input: a name may carry terminal escapes, line breaks, bidirectional overrides (CVE-2021-42574)
/// or invisible characters. This is the one border where such text is cleaned; everything behind it may print `text` as it
/// is. Each character that could move a cursor or hide another one becomes U+FFFD, so that a reader sees that it was there.
package struct SanitizedText: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The cleaned text; never longer than the limit it was made with.
    package let text: String

    /// The length of a DNS label (RFC 6763, section 4.1.1), in UTF-8 bytes.
    package static let nameLimit = 63

    /// - Parameters:
    ///   - raw: What was received.
    ///   - limit: The most UTF-8 bytes to keep; the cut falls between characters.
    package init(_ raw: some StringProtocol, limit: Int = nameLimit) {
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

    /// Whether a character shows itself and nothing else.
    package static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        // Variation selectors and the like are marks; the ones that draw nothing are "default ignorable".
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
