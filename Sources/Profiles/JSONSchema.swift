import JSON
import Model
import TOML

/// The part of JSON Schema that profiles use, for arguments of tools and for the recognition of responses.
package struct JSONSchema: Hashable, Sendable {
    enum ValueType: String, CaseIterable {
        case string, number, integer, boolean, array, object, null

        /// The type with its article, for error messages.
        var phrase: String {
            switch self {
            case .string: "a text"
            case .number: "a number"
            case .integer: "a whole number"
            case .boolean: "true or false"
            case .array: "a list"
            case .object: "an object"
            case .null: "null"
            }
        }

        func includes(_ json: JSON) -> Bool {
            switch (self, json) {
            case (.string, .string), (.number, .number), (.boolean, .bool), (.array, .array), (.object, .object),
                (.null, .null):
                true
            case (.integer, .number(let number)): number.int != nil
            default: false
            }
        }
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
    /// The maximum length of a text in bytes of UTF-8.
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
    ///
    /// `name` is the name of the value, such as `point.x`. It is empty for the whole value.
    func problem(with value: JSON, named name: String = "") -> String? {
        let subject = name.isEmpty ? "the value" : "\"\(SanitizedText(name))\""
        if let type, !type.includes(value) {
            return "\(subject) must be \(type.phrase), but is \(value.typeDescription)"
        }
        if let allowedValues, !allowedValues.contains(where: { Self.areEqual($0, value) }) {
            return "\(subject) must be \(allowedValues.count > 1 ? "one of " : "")"
                + allowedValues.map(\.text).joined(separator: ", ")
        }
        switch value {
        case .number(let number): return problem(with: number, subject)
        case .string(let text):
            guard let maxLength, text.utf8.count > maxLength else { return nil }
            return "\(subject) has \(text.utf8.count) bytes; it must have at most \(maxLength)"
        case .array(let elements):
            guard let schema = items.first else { return nil }
            return elements.enumerated().lazy
                .compactMap { schema.problem(with: $0.element, named: "\(name)[\($0.offset)]") }.first
        case .object(let object): return problem(with: object, name)
        case .null, .bool: return nil
        }
    }

    private func problem(with number: JSONNumber, _ subject: String) -> String? {
        guard let value = number.double else { return nil }
        if let minimum, let least = minimum.double, value < least {
            return "\(subject) is \(number.text); it must be at least \(minimum.text)"
        }
        if let maximum, let most = maximum.double, value > most {
            return "\(subject) is \(number.text); it must be at most \(maximum.text)"
        }
        return nil
    }

    private func problem(with object: JSONObject, _ name: String) -> String? {
        func path(_ member: String) -> String { name.isEmpty ? member : "\(name).\(member)" }
        for member in required where object[member] == nil { return "\"\(path(member))\" is missing" }
        for member in object.members {
            if let property = properties.first(where: { $0.name == member.name }) {
                if let problem = property.schema.problem(with: member.value, named: path(member.name)) {
                    return problem
                }
            } else if !allowsOtherProperties {
                let names = properties.map(\.name)
                return "\"\(SanitizedText(path(member.name)))\" is not an argument"
                    + SimilarNameFinder.suggestion(for: member.name, among: names, listedAs: "arguments")
            }
        }
        return nil
    }

    /// Compares numbers by value: 1 equals 1.0.
    private static func areEqual(_ one: JSON, _ other: JSON) -> Bool {
        if case .number(let one) = one, case .number(let other) = other { return one.double == other.double }
        return one == other
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
        if type == .object {
            object["properties"] = .object(
                JSONObject(properties.map { JSONObject.Member(name: $0.name, value: $0.schema.json) })
            )
        }
        if !required.isEmpty { object["required"] = .array(required.map { .string($0) }) }
        if !allowsOtherProperties { object["additionalProperties"] = false }
        return .object(object)
    }
}
