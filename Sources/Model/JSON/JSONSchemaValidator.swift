/// Compares a value with a JSON Schema (2020-12), as the schemas of tools use it.
///
/// In the schemas that `JSONSchemaNode` follows, the validator knows `type`, `enum`, `const`, `properties`,
/// `required`, `additionalProperties: false` and `items`. It also knows the limits of numbers, texts and lists. It
/// ignores all other keywords, and every keyword with an invalid value: the app validates the arguments again.
package struct JSONSchemaValidator {
    /// Returns the end of the message about an unknown name, such as `; did you mean "title"?`.
    package typealias NameSuggestion = (_ name: String, _ names: [String]) -> String

    /// The maximum number of bytes of the allowed values, or of a value, in a message.
    private static let listLimit = 200

    private let schema: JSONSchemaNode
    private let suggestion: NameSuggestion

    /// - Parameters:
    ///   - schema: The schema; a value that is no object allows every value.
    ///   - suggestion: Returns the end of the message about an unknown name.
    package init(_ schema: JSON, suggestion: @escaping NameSuggestion = { _, _ in "" }) {
        self.init(JSONSchemaNode(schema), suggestion: suggestion)
    }

    package init(_ schema: JSONSchemaNode, suggestion: @escaping NameSuggestion = { _, _ in "" }) {
        self.schema = schema
        self.suggestion = suggestion
    }

    /// Returns the first difference between a value and the schema; nil if the schema allows the value.
    ///
    /// The text contains names and values from the schema and from the value. Print it only as `SanitizedText`.
    /// - Parameter value: The value.
    /// - Returns: A clause such as `"x" must be a number, but is a text`.
    package func problem(with value: JSON) -> String? { problem(with: value, schema, named: "") }

    private func problem(with value: JSON, _ schema: JSONSchemaNode, named name: String) -> String? {
        if value.isNull, schema.allowsNull { return nil }
        let subject = name.isEmpty ? "the value" : "\"\(name)\""
        if let types = schema.declaredTypes, !types.isSuperset(of: JSONTypes(of: value)) {
            // Contradicting schemas leave no type.
            return types.isEmpty ? nil : "\(subject) must be \(types.phrase), but is \(value.typeDescription)"
        }
        for part in schema.parts {
            if let problem = problem(with: value, by: part) { return "\(subject) \(problem)" }
        }
        switch value {
        case .array(let elements):
            guard let items = schema.items else { return nil }
            return elements.enumerated().lazy
                .compactMap { self.problem(with: $0.element, items, named: "\(name)[\($0.offset)]") }.first
        case .object(let object): return memberProblem(object, schema, name)
        case .null, .bool, .number, .string: return nil
        }
    }

    /// Checks the keywords of one schema, without the schemas of members and elements.
    private func problem(with value: JSON, by schema: JSONObject) -> String? {
        let allowed = JSONSchemaNode.allowedValues(of: schema)
        if !allowed.isEmpty, !allowed.contains(where: { Self.areEqual($0, value) }) {
            let list = Self.listed(allowed.map(\.text))
            return "must be \(allowed.count > 1 ? "one of " : "")\(list), but is \(Self.shown(value))"
        }
        switch value {
        case .number(let number): return limitProblem(number.double, number.text, schema)
        case .string(let text):
            guard schema["minLength"] != nil || schema["maxLength"] != nil else { return nil }
            return countProblem(text.unicodeScalars.count, schema["minLength"], schema["maxLength"], "characters")
        case .array(let elements):
            return countProblem(elements.count, schema["minItems"], schema["maxItems"], "elements")
        case .null, .bool, .object: return nil
        }
    }

    private func memberProblem(_ object: JSONObject, _ schema: JSONSchemaNode, _ name: String) -> String? {
        func path(_ member: String) -> String { name.isEmpty ? member : "\(name).\(member)" }
        for part in schema.parts {
            for case .string(let member) in part["required"]?.array ?? [] where object[member] == nil {
                return "\"\(path(member))\" is missing"
            }
        }
        // Only the schema itself, because a member of `allOf` rarely knows the arguments of the others.
        let own = schema.parts.first
        let isClosed = own?["additionalProperties"] == false && own?["patternProperties"] == nil
        for member in object.members {
            if let property = schema.member(member.name) {
                if let problem = problem(with: member.value, property, named: path(member.name)) { return problem }
            } else if isClosed {
                return "\"\(path(member.name))\" is not an argument\(suggestion(member.name, schema.names))"
            }
        }
        return nil
    }

    private func limitProblem(_ value: Double?, _ text: String, _ schema: JSONObject) -> String? {
        guard let value else { return nil }
        func limit(_ keyword: String, _ isBroken: (Double) -> Bool) -> String? {
            schema[keyword]?.number.flatMap { number in number.double.map(isBroken) == true ? number.text : nil }
        }
        if let least = limit("minimum", { value < $0 }) { return "is \(text); it must be at least \(least)" }
        if let most = limit("maximum", { value > $0 }) { return "is \(text); it must be at most \(most)" }
        if let least = limit("exclusiveMinimum", { value <= $0 }) { return "is \(text); it must be more than \(least)" }
        if let most = limit("exclusiveMaximum", { value >= $0 }) { return "is \(text); it must be less than \(most)" }
        return nil
    }

    private func countProblem(_ count: Int, _ least: JSON?, _ most: JSON?, _ unit: String) -> String? {
        if let least = least?.int, count < least { return "has \(count) \(unit); it must have at least \(least)" }
        if let most = most?.int, count > most { return "has \(count) \(unit); it must have at most \(most)" }
        return nil
    }

    /// Compares numbers by value: 1 equals 1.0 (2020-12, core, section 4.2.2).
    private static func areEqual(_ one: JSON, _ other: JSON) -> Bool {
        if case .number(let one) = one, case .number(let other) = other { return one.double == other.double }
        return one == other
    }

    private static func listed(_ texts: [String]) -> String {
        var length = 0
        let shown = texts.prefix { text in
            length += text.utf8.count + 2
            return length <= listLimit
        }
        return shown.joined(separator: ", ") + (shown.count < texts.count ? ", …" : "")
    }

    private static func shown(_ value: JSON) -> String {
        guard value.array == nil, value.object == nil else { return value.typeDescription }
        let text = value.text
        return text.utf8.count <= listLimit ? text : value.typeDescription
    }
}
