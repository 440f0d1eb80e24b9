import JSON

/// The arguments of one call of a tool of ours.
struct ToolArguments: Sendable {
    private let members: JSONObject

    /// An argument that the tool does not have is refused: it is a misspelt one, whose meaning would be lost.
    init(_ params: JSONObject, known: Set<String>) throws(ToolError) {
        guard let members = (params["arguments"] ?? [:]).objectOrText else {
            throw ToolError("the arguments must be an object")
        }
        for member in members.members where !known.contains(member.name) {
            let names = known.sorted().joined(separator: ", ")
            throw ToolError("there is no argument \"\(member.name.prefix(40))\" here; there are \(names)")
        }
        self.members = members
    }

    func text(_ name: String) throws(ToolError) -> String? {
        guard let value = members[name], !value.isNull else { return nil }
        guard let text = value.string else { throw ToolError("\(name) must be a text") }
        return text
    }

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

    /// One of several words.
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
    /// The object that this is, or that it holds as a JSON text: some models write their arguments so.
    var objectOrText: JSONObject? {
        object ?? string.flatMap { try? JSON(parsing: Array($0.utf8)) }?.object
    }
}

/// Why a tool of ours did not do what it was asked: what happened to which thing, and what to do next.
///
/// It becomes a result with `isError`, so that the one who asked reads it, and not an error of the protocol.
struct ToolError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// What a tool of ours gives back: the same data as lines to read and as a structure.
struct ToolResult: Sendable {
    let text: String
    let structure: JSONObject?
    var isError = false

    init(_ text: String, _ structure: JSONObject?) {
        self.text = text
        self.structure = structure
    }

    init(_ refusal: ToolError) {
        text = refusal.description
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
