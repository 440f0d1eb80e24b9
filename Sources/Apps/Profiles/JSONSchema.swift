import Model
import TOML

/// The part of JSON Schema that profiles use, for arguments of tools and for the recognition of responses.
package struct JSONSchema: Hashable, Sendable {
    private static let types = ["string", "number", "integer", "boolean", "array", "object", "null"]

    /// The schema for clients.
    let json: JSON

    /// The schemas of the members of an object.
    var properties: [JSONObject.Member] { json["properties"]?.object?.members ?? [] }
    /// The names of the members that an object must have.
    var required: [String] { json["required"]?.array?.compactMap(\.string) ?? [] }

    /// Returns the first difference between a value and the schema, for example `"x" must be a number, but is a text`.
    func problem(with value: JSON) -> String? {
        let validator = JSONSchemaValidator(json) {
            SimilarNameFinder.suggestion(for: $0, among: $1, listedAs: "arguments")
        }
        return validator.problem(with: value).map { SanitizedText($0, limit: .max).text }
    }
}

extension JSONSchema {
    /// Creates the schema of an object without other members.
    init(properties: JSONObject, required: [String]) {
        var object: JSONObject = ["type": "object", "properties": .object(properties)]
        if !required.isEmpty { object["required"] = .array(required.map { .string($0) }) }
        object["additionalProperties"] = false
        json = .object(object)
    }

    /// Parses the table of a schema.
    init(_ table: TOMLTable) throws(TOMLError) {
        try table.allow([
            "type", "enum", "const", "minimum", "maximum", "maxLength", "items", "properties", "required",
            "additionalProperties", "default", "description",
        ])
        var schema = JSONObject()
        schema["type"] = try table.optional("type", "one of \(Self.types.joined(separator: ", "))") { json in
            json.string.flatMap { Self.types.contains($0) ? json : nil }
        }
        schema["description"] = try table.text("description").map { .string($0) }
        let choices = try table.list("enum", of: "a value") { $0 }
        schema["enum"] = choices.isEmpty ? nil : .array(choices)
        if let constant = table.values["const"] { schema["enum"] = [constant] }
        schema["minimum"] = try table.optional("minimum", "a number", \.number).map { .number($0) }
        schema["maximum"] = try table.optional("maximum", "a number", \.number).map { .number($0) }
        schema["maxLength"] = try table.number("maxLength", in: 0...Profile.bodyLimit).map { .number(JSONNumber($0)) }
        schema["items"] = try table.value("items", JSONSchema.init(_:))?.json
        schema["default"] = table.values["default"]
        let properties = try table.value("properties", Self.properties)
        if let properties = properties ?? (schema["type"] == "object" ? [:] : nil) {
            schema["properties"] = .object(properties)
        }
        let required = try table.list("required", of: "a text in quotes") { $0.string == nil ? nil : $0 }
        if !required.isEmpty { schema["required"] = .array(required) }
        if try !table.flag("additionalProperties", default: true) { schema["additionalProperties"] = false }
        json = .object(schema)
        if let value = table.values["default"], let problem = problem(with: value) {
            throw table.error("default", "is invalid: \(problem)")
        }
    }

    /// Parses a table with one schema for each name.
    static func properties(_ table: TOMLTable) throws(TOMLError) -> JSONObject {
        var properties = JSONObject()
        for member in table.values.members {
            properties[member.name] = try table.value(member.name, JSONSchema.init(_:))?.json
        }
        return properties
    }
}
