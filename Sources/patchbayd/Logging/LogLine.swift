/// One log entry: a message and its fields.
struct LogLine: Equatable, Sendable {
    struct Field: Equatable, Sendable {
        let name: String
        let value: String
    }

    let message: String
    let fields: [Field]

    /// The message, and the fields as `name=value`. A value with a space, a quote, `=` or a control character is quoted.
    var text: String {
        fields.reduce(into: Self.escaped(message, quotes: false)) { text, field in
            text += " \(field.name.replacing(" ", with: "_"))=\(Self.quoted(field.value))"
        }
    }

    private static func quoted(_ value: String) -> String {
        let needsQuotes =
            value.isEmpty
            || value.unicodeScalars.contains { $0.value <= 0x20 || "\"=\\\u{7F}".unicodeScalars.contains($0) }
        return needsQuotes ? "\"\(escaped(value, quotes: true))\"" : value
    }

    /// Replaces control characters, which would start a line of their own.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": escaped += "\\n"
            case "\r": escaped += "\\r"
            case "\t": escaped += "\\t"
            case "\"" where quotes, "\\" where quotes: escaped += "\\\(scalar)"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                escaped += "\\u{\(String(scalar.value, radix: 16))}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
