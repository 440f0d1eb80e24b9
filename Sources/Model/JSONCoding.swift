package import FoundationEssentials

/// The JSON format of this module's types in HTTP, event streams, `--json` output and the state directory.
///
/// Keys are sorted, so equal values have equal bytes. Slashes are not escaped. Dates are ISO 8601 in UTC with
/// milliseconds.
package enum JSONCoding {
    /// Returns a new encoder, which the caller may configure further.
    package static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(text(of: date))
        }
        return encoder
    }

    /// Returns a decoder for the format. It also accepts dates without a fraction.
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

    /// Returns a date in the form `2026-11-21T14:30:00.250Z`.
    package static func text(of date: Date) -> String {
        // The format style truncates below a millisecond, and 0.123 s as a Double is slightly less than 0.123.
        let millisecond = (date.timeIntervalSince1970 * 1_000).rounded() / 1_000 + 0.000_1
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return Date(timeIntervalSince1970: millisecond).formatted(style)
    }

    /// Parses a date with or without a fraction of a second. Returns nil for other text.
    package static func date(from text: String) -> Date? {
        for includesFraction in [true, false] {
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: includesFraction)
            guard let date = try? Date(text, strategy: style) else { continue }
            return Date(timeIntervalSince1970: (date.timeIntervalSince1970 * 1_000).rounded() / 1_000)
        }
        return nil
    }
}
