import Model

/// Refuses request bodies with members that do not exist, by the schemas of the OpenAPI document.
///
/// Otherwise a mistyped member is ignored, and the request allows more than its sender meant. For example, an invite
/// with `tool` in place of `tools` would have no limit.
enum UnknownMemberCheck {
    private static let schemas: JSON = {
        do { return try JSON(parsing: OpenAPISchemas.text) } catch {
            preconditionFailure("the schemas of the OpenAPI document are not JSON: \(error)")
        }
    }()

    /// Throws a problem that names the first unknown member of a body, and the nearest existing one. Values are not
    /// repeated, because a value may be a misplaced secret.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - schema: The name of the body's schema; nil for a request without a body, which has no members.
    /// - Throws: `Problem`.
    static func check(_ body: JSON, against schema: String?) throws(Problem) {
        let schema = schema.flatMap { schemas[$0] } ?? ["additionalProperties": false]
        guard let detail = sentence(body, schema, at: "") else { return }
        throw Problem(.badRequest, detail, hint: "see the schemas in GET /openapi.json")
    }

    /// Returns a sentence about the first unknown member of a value; nil if the schema has all members.
    private static func sentence(_ value: JSON, _ schema: JSON, at path: String) -> String? {
        let schema = resolved(schema)
        switch value {
        case .array(let elements):
            guard let items = schema["items"] else { return nil }
            return elements.enumerated().lazy.compactMap { sentence($0.element, items, at: "\(path)[\($0.offset)]") }
                .first
        case .object(let object): return sentence(object, alternatives(of: schema), at: path)
        case .null, .bool, .number, .string: return nil
        }
    }

    private static func sentence(_ object: JSONObject, _ alternatives: [JSON], at path: String) -> String? {
        let matching = alternatives.first { alternative in
            (alternative["required"]?.array ?? []).allSatisfy { $0.string.map { object[$0] != nil } ?? false }
        }
        // A body without any of the alternatives is refused for its missing member, unless it has an unknown one.
        guard let schema = matching ?? alternatives.first, schema["additionalProperties"] == false else { return nil }
        let properties = schema["properties"]?.object ?? [:]
        let known = matching == nil ? alternatives.flatMap(names) : names(of: schema)
        for member in object.members {
            let memberPath = path.isEmpty ? member.name : "\(path).\(member.name)"
            guard let property = properties[member.name] else {
                if matching == nil, known.contains(member.name) { continue }
                return unknown(member.name, at: memberPath, among: known, in: properties)
            }
            if let sentence = sentence(member.value, property, at: memberPath) { return sentence }
        }
        return nil
    }

    private static func unknown(
        _ name: String,
        at path: String,
        among names: [String],
        in properties: JSONObject
    ) -> String {
        let start = "there is no member \"\(SanitizedText(path, limit: 200))\""
        // A member at the wrong place: `tools` belongs to `permissions`.
        let parent = properties.members.first { property in
            alternatives(of: resolved(property.value)).contains { Self.names(of: $0).contains(name) }
        }
        if let parent {
            return "\(start); did you mean \"\(parent.name).\(name)\"?"
        }
        return start + SimilarNameFinder.suggestion(for: name, among: names, listedAs: "members")
    }

    /// Returns the schemas of which a value matches one.
    private static func alternatives(of schema: JSON) -> [JSON] {
        schema["oneOf"]?.array.map { $0.map(resolved).filter { $0["type"] == "object" } } ?? [schema]
    }

    private static func names(of schema: JSON) -> [String] { schema["properties"]?.object?.members.map(\.name) ?? [] }

    private static func resolved(_ schema: JSON) -> JSON {
        guard let name = schema["$ref"]?.string?.split(separator: "/").last else { return schema }
        return schemas[String(name)] ?? .null
    }
}
