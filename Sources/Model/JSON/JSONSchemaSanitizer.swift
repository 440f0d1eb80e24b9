/// Repairs the schemas of an app's tools so that the strictest clients accept them. The meaning of a schema stays the same.
///
/// The rules come from the TypeScript SDK, which drops a list with a schema of another form, and from the APIs of models.
/// Gemini refuses a request with an `enum` without a type (gemini-cli#4400). OpenAI refuses a list without `items` and
/// parameters without `properties` (openai-agents-python#449).
package enum JSONSchemaSanitizer {
    /// Schemas below this depth are not repaired.
    private static let maxDepth = 32

    /// Returns the schema of arguments, which are always an object.
    package static func inputSchema(_ schema: JSON?) -> JSON {
        var object = repaired(schema ?? [:]).object ?? [:]
        if object["type"] != "object" { object["type"] = "object" }
        if object["properties"] == nil { object["properties"] = [:] }
        return .object(object)
    }

    /// Returns the schema of a result; nil if it is no object. MCP 2026-07-28 allows every type.
    package static func outputSchema(_ schema: JSON) -> JSON? {
        guard var object = schema.object.map({ repaired(.object($0)) })?.object else { return nil }
        if object["type"] == nil, object["properties"] != nil { object["type"] = "object" }
        return .object(object)
    }

    /// Returns a schema that is an object. `true` and values that are no schemas, such as PHP's empty list, allow everything.
    private static func repaired(_ schema: JSON, _ depth: Int = 0) -> JSON {
        guard let object = schema.object else { return schema == false ? ["not": [:]] : [:] }
        guard depth < maxDepth else { return schema }
        var repaired = JSONObject(
            object.members.compactMap { member in
                value(of: member, depth + 1).map { JSONObject.Member(name: member.name, value: $0) }
            }
        )
        let values = repaired["enum"]?.array ?? []
        if repaired["type"] == nil, !values.isEmpty, values.allSatisfy({ $0.string != nil }) {
            repaired["type"] = "string"
        }
        if repaired["type"] == "array", repaired["items"] == nil, repaired["prefixItems"] == nil {
            repaired["items"] = [:]
        }
        return .object(repaired)
    }

    /// Returns the repaired value of a keyword; nil if it must be left out.
    private static func value(of keyword: JSONObject.Member, _ depth: Int) -> JSON? {
        let value = keyword.value
        switch keyword.name {
        case "properties", "patternProperties", "$defs", "definitions":
            return .object((value.object ?? [:]).compactMapValues { repaired($0, depth) })
        case "items":
            // A list of schemas was `prefixItems` before 2020-12.
            return value.array.flatMap { $0.isEmpty ? nil : value } ?? repaired(value, depth)
        case "additionalProperties": return value.bool == nil ? repaired(value, depth) : value
        case "anyOf", "oneOf", "allOf":
            guard let schemas = value.array, !schemas.isEmpty else { return nil }
            return .array(schemas.map { repaired($0, depth) })
        case "required":
            let names = value.array ?? (value.string == nil ? nil : [value])
            return names.map { .array($0.filter { $0.string != nil }) }
        case "enum": return value.array?.isEmpty == false ? value : nil
        case "type": return value.string != nil || value.array?.isEmpty == false ? value : nil
        case "title", "description": return value.string == nil ? nil : value
        default: return value
        }
    }
}

extension JSON {
    /// Returns whether another value has everything of this one. Its objects may have further members.
    package func isKept(in other: JSON) -> Bool {
        switch (self, other) {
        case (.object(let own), .object(let others)):
            // Most objects have the same members in the same order, where a search of each would take quadratic time.
            zip(own.members.indices, own.members).allSatisfy { index, member in
                let same = index < others.members.count && others.members[index].isCalled(member.name)
                return (same ? others.members[index].value : others[member.name]).map { member.value.isKept(in: $0) }
                    ?? false
            }
        case (.array(let own), .array(let others)):
            own.count == others.count && zip(own, others).allSatisfy { $0.isKept(in: $1) }
        default: self == other
        }
    }
}
