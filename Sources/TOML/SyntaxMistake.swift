/// A syntax error of TOMLKit in words, with the next step.
struct SyntaxMistake {
    /// The part of the syntax that the parser was reading, such as `boolean` or `table header`.
    private let part: String
    /// The parser's reason.
    private let reason: String
    /// The line of the file from the error on.
    private let rest: Substring

    /// - Parameters:
    ///   - message: The message of TOMLKit: `Error while parsing PART: REASON`.
    ///   - position: The place of the error.
    ///   - text: The whole file.
    init(_ message: String, at position: FilePosition, in text: String) {
        let words = message.split(separator: ": ", maxSplits: 1)
        part = words.count > 1 ? String(words[0].replacing("Error while parsing ", with: "")) : ""
        reason = String(words.last ?? "")
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        let line = lines.indices.contains(position.line - 1) ? lines[position.line - 1] : ""
        rest = Substring(line.unicodeScalars.dropFirst(position.column - 1))
    }

    /// The mistake and the next step, as one clause each.
    var words: String {
        if reason.hasPrefix("cannot redefine") {
            let parts = reason.split(separator: "'")
            let name = parts.count > 1 ? "\"\(parts[1])\"" : "the key"
            return "\(name) is in the file already; keep one of the two, and the keys of a table below one header"
        }
        switch part {
        case "key-value pair": return ofPair
        case "value", "boolean": return ofValue
        case "table header":
            return reason.hasPrefix("expected a comment")
                ? "more text follows the ]; put each key on a line of its own below the [table]"
                : "there is no ] after the name of the table; write [table]"
        case "array":
            return reason.hasSuffix("saw comma")
                ? "a value is missing between two commas; remove one of them"
                : "a comma is missing between two values; write [1, 2]"
        case "inline table":
            return reason.contains("dangling") ? "a comma stands before }; remove it" : "\(plain); write { key = 1 }"
        case "string": return ofText
        case "date", "time", "date-time": return "this is not a date or a time; put text in quotes"
        default: return part.contains("integer") || part == "floating-point" ? ofNumber : "\(plain); put text in quotes"
        }
    }

    /// The parser's words.
    private var plain: String { reason.isEmpty ? "this is not TOML" : reason }

    private var ofPair: String {
        if reason.hasPrefix("expected '='") { return "there is no = after the key; write key = value" }
        if reason.hasPrefix("expected a comment") {
            return "more text follows the value; put the whole text in quotes, or begin a new line"
        }
        return Self.missingValue
    }

    private static let missingValue = "a value is missing after =; write key = value, or remove the line"

    private var ofValue: String {
        let word = String(rest.prefix { !$0.isWhitespace && !",]}#".contains($0) })
        guard let first = word.first, first != "=" else { return Self.missingValue }
        let inner = word.filter { !"‘’“”„".contains($0) }
        if inner != word { return "these quotes are no quotes of TOML; write \"\(inner)\"" }
        if part == "boolean" || ["true", "false", "yes", "no", "on", "off"].contains(word.lowercased()) {
            return "\"\(word)\" is no value; write true or false, or put text in quotes"
        }
        if first.isLetter || first == "/" || first == "~" { return "text needs quotes; write \"\(word)\"" }
        return "\"\(word)\" is no value; write a number, true, false, or text in quotes"
    }

    private var ofText: String {
        if reason.hasPrefix("unknown escape") {
            return "a backslash has another meaning in \"…\"; write \\\\ for it, or put the text in '…'"
        }
        return reason.contains("control character")
            ? "the text has a control character; remove it" : "\(plain); put the text in '…'"
    }

    private var ofNumber: String {
        if reason.hasPrefix("leading zero") {
            return "a number cannot begin with 0; remove the zero, or put text in quotes"
        }
        return reason.hasSuffix("64 bits")
            ? "the number is too large; write a smaller one" : "this is not a number; put text in quotes"
    }
}
