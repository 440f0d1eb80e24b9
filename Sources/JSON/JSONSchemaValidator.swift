/// Compares a value with a JSON Schema (2020-12), as the schemas of tools use it.
///
/// The validator knows the keywords `type`, `enum`, `const`, `properties`, `required`, `additionalProperties: false`,
/// `items`, and the limits of numbers, texts and lists. It ignores all other keywords, and every keyword with an invalid
/// value: the app validates the arguments again. A schema with `$ref` allows every value.
package struct JSONSchemaValidator {
    /// Returns the end of the message about an unknown name, such as `; did you mean "title"?`.
    package typealias NameSuggestion = (_ name: String, _ names: [String]) -> String

    /// The maximum number of bytes of the allowed values, or of a value, in a message.
    private static let listLimit = 200

    private let schema: JSON
    private let suggestion: NameSuggestion

    /// - Parameters:
    ///   - schema: The schema; a value that is no object allows every value.
    ///   - suggestion: Returns the end of the message about an unknown name.
    package init(_ schema: JSON, suggestion: @escaping NameSuggestion = { _, _ in "" }) {
        self.schema = schema
        self.suggestion = suggestion
    }

    /// Returns the first difference between a value and the schema; nil if the schema allows the value.
    ///
    /// The text contains names and values from the schema and from the value. Print it only as `SanitizedText`.
    /// - Parameters:
    ///   - value: The value.
    ///   - name: The name of the value, such as `point.x`; empty for the outermost value.
    /// - Returns: A clause such as `"x" must be a number, but is a text`.
    package func problem(with value: JSON, named name: String = "") -> String? {
        guard let schema = schema.object, schema["$ref"] == nil else { return nil }
        let subject = name.isEmpty ? "the value" : "\"\(name)\""
        let types = schema["type"]?.array?.compactMap(\.string) ?? schema["type"]?.string.map { [$0] } ?? []
        if !types.isEmpty, !types.contains(where: { Self.is(value, $0) }) {
            let phrases = types.map(Self.phrase).joined(separator: " or ")
            return "\(subject) must be \(phrases), but is \(value.typeDescription)"
        }
        let allowed = schema["const"].map { [$0] } ?? schema["enum"]?.array ?? []
        if !allowed.isEmpty, !allowed.contains(where: { Self.areEqual($0, value) }) {
            let list = Self.listed(allowed.map(\.text))
            return "\(subject) must be \(allowed.count > 1 ? "one of " : "")\(list), but is \(Self.shown(value))"
        }
        switch value {
        case .number(let number): return limitProblem(number.double, number.text, schema).map { "\(subject) \($0)" }
        case .string(let text):
            let count = text.unicodeScalars.count
            let problem = countProblem(count, schema["minLength"], schema["maxLength"], "characters")
            return problem.map { "\(subject) \($0)" }
        case .array(let elements):
            let problem = countProblem(elements.count, schema["minItems"], schema["maxItems"], "elements")
            return problem.map { "\(subject) \($0)" } ?? elementProblem(elements, schema, name)
        case .object(let object): return memberProblem(object, schema, name)
        case .null, .bool: return nil
        }
    }

    private func memberProblem(_ object: JSONObject, _ schema: JSONObject, _ name: String) -> String? {
        func path(_ member: String) -> String { name.isEmpty ? member : "\(name).\(member)" }
        for case .string(let member) in schema["required"]?.array ?? [] where object[member] == nil {
            return "\"\(path(member))\" is missing"
        }
        let properties = schema["properties"]?.object ?? [:]
        let isClosed = schema["additionalProperties"] == false && schema["patternProperties"] == nil
        for member in object.members {
            if let property = properties[member.name] {
                let validator = JSONSchemaValidator(property, suggestion: suggestion)
                if let problem = validator.problem(with: member.value, named: path(member.name)) { return problem }
            } else if isClosed {
                let end = suggestion(member.name, properties.members.map(\.name))
                return "\"\(path(member.name))\" is not an argument\(end)"
            }
        }
        return nil
    }

    private func elementProblem(_ elements: [JSON], _ schema: JSONObject, _ name: String) -> String? {
        // With `prefixItems`, the schema `items` is for the elements after those.
        guard let items = schema["items"], items.object != nil, schema["prefixItems"] == nil else { return nil }
        let validator = JSONSchemaValidator(items, suggestion: suggestion)
        return elements.enumerated().lazy
            .compactMap { validator.problem(with: $0.element, named: "\(name)[\($0.offset)]") }.first
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

/// The types of JSON Schema.
extension JSONSchemaValidator {
    /// Returns whether a value has a type of JSON Schema. An unknown type includes every value.
    package static func `is`(_ value: JSON, _ type: String) -> Bool {
        switch type {
        case "string": value.string != nil
        case "integer": value.number?.double.map { $0 == $0.rounded() } ?? false
        case "number": value.number != nil
        case "boolean": value.bool != nil
        case "array": value.array != nil
        case "object": value.object != nil
        case "null": value.isNull
        default: true
        }
    }

    /// Returns the type with its article, for messages.
    private static func phrase(_ type: String) -> String {
        switch type {
        case "string": "a text"
        case "integer": "a whole number"
        case "number": "a number"
        case "boolean": "true or false"
        case "array": "a list"
        case "object": "an object"
        default: type
        }
    }
}
