import Apps
import Model

/// A parameter of a tool. Its declaration determines the schema in `tools/list` and the type of the argument.
struct ToolParameter<Value: Sendable>: Sendable {
    let name: String
    let schema: JSON
    /// Parses an argument that is not null.
    let parse: @Sendable (JSON) throws(ToolError) -> Value

    /// The parameter in the schema of the tool's arguments.
    var property: JSONObject.Member { JSONObject.Member(name: name, value: schema) }
}

extension ToolParameter where Value == String {
    /// The parameter that selects one endpoint.
    static var endpoint: Self { text("endpoint", "id, or a part that fits one") }

    /// The parameter that selects the endpoints with a name that contains this text.
    static var endpointFilter: Self { text("endpoint", "part of id, app, device") }

    static func text(_ name: String, _ description: String) -> Self {
        Self(name: name, schema: ["type": "string", "description": .string(description)]) { json throws(ToolError) in
            guard let text = json.string else { throw ToolError("\(name) must be a string") }
            return text
        }
    }
}

extension ToolParameter where Value == Int {
    /// A whole number. The minimum is checked but not declared, to keep the tool list short.
    static func number(_ name: String, in range: ClosedRange<Int>, _ description: String) -> Self {
        Self(
            name: name,
            schema: [
                "type": "integer", "maximum": .number(JSONNumber(range.upperBound)),
                "description": .string(description),
            ]
        ) { json throws(ToolError) in
            guard let number = json.int, range.contains(number) else {
                throw ToolError("\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
    }
}

extension ToolParameter where Value == UInt16 {
    /// A port. The range is checked but not declared, to keep the tool list short.
    static func port(_ name: String, _ description: String) -> Self {
        let number = ToolParameter<Int>.number(name, in: 1...65_535, description)
        return Self(name: name, schema: ["type": "integer", "description": .string(description)]) {
            json throws(ToolError) in UInt16(try number.parse(json))
        }
    }
}

extension ToolParameter where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of several words. Gemini refuses all tools if the schema omits the type (gemini-cli#4400).
    static func word(_ name: String, _ description: String? = nil) -> Self {
        let words = Value.allCases.map(\.rawValue)
        var schema: JSONObject = ["type": "string", "enum": .array(words.map(JSON.string))]
        schema["description"] = description.map(JSON.string)
        return Self(name: name, schema: .object(schema)) { json throws(ToolError) in
            guard let text = json.string else { throw ToolError("\(name) must be a string") }
            guard let word = Value(rawValue: text) else {
                throw ToolError("\(name) must be one of \(words.joined(separator: ", "))")
            }
            return word
        }
    }
}

extension ToolParameter where Value == JSONObject {
    static func object(_ name: String) -> Self {
        Self(name: name, schema: ["type": "object"]) { json throws(ToolError) in
            do { return try json.objectOrParsed() } catch { throw ToolError("\(name) \(error)") }
        }
    }
}
