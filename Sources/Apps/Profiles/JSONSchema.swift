import Model
import TOML

/// The part of JSON Schema that profiles use, for arguments of tools and for the recognition of responses.
package struct JSONSchema: Hashable, Sendable {
    enum ValueType: String, CaseIterable {
        case string, number, integer, boolean, array, object, null
    }

    /// The schema of one member of an object.
    struct Property: Hashable {
        let name: String
        let schema: JSONSchema
    }

    var type: ValueType?
    /// The allowed values of `enum` or `const`.
    var allowedValues: [JSON]?
    var minimum: JSONNumber?
    var maximum: JSONNumber?
    /// The maximum length of a text in Unicode scalars.
    var maxLength: Int?
    /// The schema of each element; at most one, in a list because a struct cannot contain itself.
    var items: [JSONSchema] = []
    var properties: [Property] = []
    var required: [String] = []
    var allowsOtherProperties = true
    var defaultValue: JSON?
    var text: String?

    /// Creates the schema of an object.
    init(properties: [Property], required: [String]) {
        type = .object
        self.properties = properties
        self.required = required
        allowsOtherProperties = false
    }
}

// MARK: - Validation

extension JSONSchema {
    /// Returns the first difference between a value and the schema, for example `"x" must be a number, but is a text`.
    func problem(with value: JSON) -> String? {
        let validator = JSONSchemaValidator(json) {
            SimilarNameFinder.suggestion(for: $0, among: $1, listedAs: "arguments")
        }
        return validator.problem(with: value).map { SanitizedText($0, limit: .max).text }
    }
}

// MARK: - Parsing and printing

extension JSONSchema {
    /// Parses the table of a schema.
    init(_ table: TOMLTable) throws(TOMLError) {
        try table.allow([
            "type", "enum", "const", "minimum", "maximum", "maxLength", "items", "properties", "required",
            "additionalProperties", "default", "description",
        ])
        let names = ValueType.allCases.map(\.rawValue).joined(separator: ", ")
        type = try table.optional("type", "one of \(names)") { $0.string.flatMap(ValueType.init) }
        let constant = try table.optional("const", "a value") { $0 }
        let choices = try table.list("enum", of: "a value") { $0 }
        allowedValues = constant.map { [$0] } ?? (choices.isEmpty ? nil : choices)
        minimum = try table.optional("minimum", "a number", \.number)
        maximum = try table.optional("maximum", "a number", \.number)
        maxLength = try table.number("maxLength", in: 0...Profile.bodyLimit)
        if let schema = try table.table("items") { items = [try JSONSchema(schema)] }
        if let table = try table.table("properties") { properties = try Self.properties(table) }
        required = try table.list("required", of: "a text in quotes", \.string)
        allowsOtherProperties = try table.optional("additionalProperties", "true or false", \.bool) ?? true
        text = try table.text("description")
        defaultValue = try table.optional("default", "a value") { $0 }
        if let value = defaultValue, let problem = problem(with: value) {
            throw table.error("default", "is invalid: \(problem)")
        }
    }

    /// Parses a table with one schema for each name.
    static func properties(_ table: TOMLTable) throws(TOMLError) -> [Property] {
        var properties: [Property] = []
        for member in table.values.members {
            guard let schema = try table.table(member.name) else { continue }
            properties.append(Property(name: member.name, schema: try JSONSchema(schema)))
        }
        return properties
    }

    /// The schema for clients.
    var json: JSON {
        var object = JSONObject()
        object["type"] = type.map { .string($0.rawValue) }
        object["description"] = text.map { .string($0) }
        object["enum"] = allowedValues.map { .array($0) }
        object["minimum"] = minimum.map { .number($0) }
        object["maximum"] = maximum.map { .number($0) }
        object["maxLength"] = maxLength.map { .number(JSONNumber($0)) }
        object["items"] = items.first?.json
        object["default"] = defaultValue
        if type == .object || !properties.isEmpty {
            object["properties"] = .object(
                JSONObject(properties.map { JSONObject.Member(name: $0.name, value: $0.schema.json) })
            )
        }
        if !required.isEmpty { object["required"] = .array(required.map { .string($0) }) }
        if !allowsOtherProperties { object["additionalProperties"] = false }
        return .object(object)
    }
}
