import JSON

/// The arguments of a call of one of the broker's tools.
struct ToolArguments: Sendable {
    private let members: JSONObject

    /// Parses the arguments. Unknown arguments are rejected, because a misspelled one would otherwise be ignored.
    init(_ params: JSONObject, known: Set<String>) throws(ToolError) {
        guard let members = (params["arguments"] ?? [:]).objectOrText else {
            throw ToolError("the arguments must be an object")
        }
        for member in members.members where !known.contains(member.name) {
            let names = known.sorted().joined(separator: ", ")
            throw ToolError("unknown argument \"\(member.name.prefix(40))\"; the arguments are \(names)")
        }
        self.members = members
    }

    func text(_ name: String) throws(ToolError) -> String? {
        guard let value = members[name], !value.isNull else { return nil }
        guard let text = value.string else { throw ToolError("\(name) must be a string") }
        return text
    }

    /// Returns an argument that must be a string with at least one character.
    func required(_ name: String) throws(ToolError) -> String {
        guard let text = try text(name), !text.isEmpty else { throw ToolError("\(name) is missing") }
        return text
    }

    func number(_ name: String, in range: ClosedRange<Int>) throws(ToolError) -> Int? {
        guard let value = members[name], !value.isNull else { return nil }
        guard let number = value.int, range.contains(number) else {
            throw ToolError("\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func object(_ name: String) throws(ToolError) -> JSONObject? {
        guard let value = members[name], !value.isNull else { return nil }
        guard let object = value.objectOrText else { throw ToolError("\(name) must be an object") }
        return object
    }

    /// Returns an argument that must be one of several words.
    func word<Word: RawRepresentable & CaseIterable>(_ name: String, as type: Word.Type) throws(ToolError) -> Word?
    where Word.RawValue == String {
        guard let text = try text(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            throw ToolError("\(name) must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return word
    }
}

extension JSON {
    /// The object, parsed from a JSON string if necessary: some models send arguments as a string.
    var objectOrText: JSONObject? {
        object ?? string.flatMap { try? JSON(parsing: Array($0.utf8)) }?.object
    }
}

/// The reason why one of the broker's tools failed, and the next step.
///
/// The caller gets a result with `isError` instead of a protocol error, so that the model can read the reason.
struct ToolError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The result of one of the broker's tools: the same data as text and as structured content.
struct ToolResult: Sendable {
    let text: String
    let structure: JSONObject?
    var isError = false

    init(_ text: String, _ structure: JSONObject?) {
        self.text = text
        self.structure = structure
    }

    init(_ error: ToolError) {
        text = error.description
        structure = nil
        isError = true
    }

    var json: JSONObject {
        var result: JSONObject = ["content": [["type": "text", "text": .string(text)]]]
        result["structuredContent"] = structure.map(JSON.object)
        if isError { result["isError"] = true }
        return result
    }
}
