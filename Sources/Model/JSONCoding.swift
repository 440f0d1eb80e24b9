package import FoundationEssentials

/// How the words of this module are written as JSON, wherever they travel: HTTP, event streams, `--json` and the state
/// directory.
///
/// Keys are sorted, so that equal values are equal bytes; slashes stay as they are; dates are ISO 8601 in UTC, to the
/// millisecond.
package enum JSONCoding {
    /// An encoder of our dialect; each caller may adjust its own.
    package static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(text(of: date))
        }
        return encoder
    }

    /// Reads what `encoder()` writes, and dates without a fraction as well.
    package static func decoder() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = date(from: text) else {
                throw DecodingError.dataCorruptedError(
                    in: container,
                    debugDescription: "\"\(SanitizedText(text))\" is not a date; write it like 2026-11-21T14:30:00.000Z"
                )
            }
            return date
        }
        return decoder
    }

    /// `2026-11-21T14:30:00.250Z`.
    package static func text(of date: Date) -> String {
        // The style cuts what is below a millisecond off, and 0.123 s is a little less than that as a Double.
        let millisecond = (date.timeIntervalSince1970 * 1_000).rounded() / 1_000 + 0.000_1
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return Date(timeIntervalSince1970: millisecond).formatted(style)
    }

    /// Reads a date with or without a fraction of a second; nil when it is none.
    package static func date(from text: String) -> Date? {
        for includesFraction in [true, false] {
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: includesFraction)
            guard let date = try? Date(text, strategy: style) else { continue }
            return Date(timeIntervalSince1970: (date.timeIntervalSince1970 * 1_000).rounded() / 1_000)
        }
        return nil
    }
}
