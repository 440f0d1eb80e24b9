import FoundationEssentials

/// In JSON a record is an array of `{"key": …}` objects, because order and the three forms of a value are facts of it:
/// `value` for text, `base64` for bytes that are not UTF-8 or not printable, neither for a bare attribute.
extension TXTRecord: Codable {
    private struct Pair: Codable {
        var key: String
        var value: SanitizedText?
        var base64: Data?
    }

    package init(from decoder: any Decoder) throws {
        self.init()
        for pair in try [Pair](from: decoder) {
            set(pair.key, to: pair.base64.map { Array($0) } ?? pair.value.map { Array($0.text.utf8) })
        }
    }

    package func encode(to encoder: any Encoder) throws {
        let pairs = entries.map { entry in
            guard let value = entry.value else { return Pair(key: entry.key) }
            let text = String(validating: value, as: UTF8.self)
            if let text, SanitizedText(text, limit: .max).text == text {
                return Pair(key: entry.key, value: SanitizedText(text, limit: .max))
            }
            return Pair(key: entry.key, base64: Data(value))
        }
        try pairs.encode(to: encoder)
    }
}
