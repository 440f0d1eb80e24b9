import JSON
import Model

/// `key=value` of a command line, as the tool's schema wants it.
struct ToolArgument: Equatable {
    let name: String
    let text: String

    /// - Throws: `CLIError`.
    init(_ word: String) throws(CLIError) {
        guard let sign = word.firstIndex(of: "="), sign != word.startIndex else {
            throw .usage("\"\(SanitizedText(word))\" is not KEY=VALUE", try: "patchbay call --help")
        }
        name = String(word[..<sign])
        text = String(word[word.index(after: sign)...])
    }

    /// The value by the schema of its property; where that says nothing, what looks like JSON is.
    ///
    /// - Throws: `CLIError` where the text cannot be what the schema wants.
    func value(by schema: JSON?) throws(CLIError) -> JSON {
        let types = schema?["type"]?.array?.compactMap(\.string) ?? (schema?["type"]?.string.map { [$0] } ?? [])
        let json = try? JSON(parsing: text)
        if types.contains("string") {
            return json?.isNull == true && types.contains("null") ? .null : .string(text)
        }
        guard !types.isEmpty else { return json.flatMap { $0.string == nil ? $0 : nil } ?? .string(text) }
        guard let json, types.contains(where: { Self.is(json, $0) }) else {
            throw .usage(
                "\(SanitizedText(name)) must be \(types.map { SanitizedText($0).text }.joined(separator: " or ")), and "
                    + "\"\(SanitizedText(text))\" is not",
                try: "patchbay tools ENDPOINT TOOL"
            )
        }
        return json
    }

    private static func `is`(_ json: JSON, _ type: String) -> Bool {
        switch type {
        case "integer": json.int != nil
        case "number": json.number != nil
        case "boolean": json.bool != nil
        case "array": json.array != nil
        case "object": json.object != nil
        case "null": json.isNull
        default: false
        }
    }
}
