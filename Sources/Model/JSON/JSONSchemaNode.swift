/// The schemas of one document that a value must match together, with references followed.
///
/// These are the schema itself, the target of its `$ref` and the members of `allOf`. The only branch of an `anyOf` or
/// `oneOf` beside null counts too, because generators write an optional argument so. Several branches count for the types
/// only. A reference to another document, or an unknown one, allows every value.
package struct JSONSchemaNode: Sendable {
    /// The maximum number of schemas that are followed. It ends cycles of references.
    private static let limit = 32

    private let root: JSON
    let parts: [JSONObject]
    /// True if a branch allows null, or OpenAPI 3.0's `nullable`.
    let allowsNull: Bool
    /// The types that the value may have by `type`; nil if the schema names none.
    let declaredTypes: JSONTypes?

    /// Creates the node of a whole document.
    package init(_ schema: JSON) { self.init([schema], in: schema) }

    private init(_ schemas: [JSON], in root: JSON, followsBranches: Bool = true) {
        self.root = root
        var (parts, pending): ([JSONObject], [JSON]) = ([], schemas)
        var allowsNull = false
        var declared: JSONTypes?
        var index = 0
        while index < pending.count, index < Self.limit {
            defer { index += 1 }
            guard let schema = pending[index].object else { continue }
            if let reference = schema["$ref"] {
                // Before 2019-09 the other keywords beside a reference have no meaning.
                if let target = Self.target(of: reference, in: root) { pending.append(target) }
                continue
            }
            parts.append(schema)
            declared = Self.narrowed(declared, to: JSONTypes(named: schema["type"]))
            if schema["nullable"] == true { allowsNull = true }
            pending += schema["allOf"]?.array?.prefix(Self.limit) ?? []
            for keyword in ["anyOf", "oneOf"] {
                guard let all = schema[keyword]?.array else { continue }
                let branches = all.filter { !Self.isNull($0) }
                if branches.count < all.count { allowsNull = true }
                if branches.count == 1 {
                    pending.append(branches[0])
                } else if followsBranches {
                    declared = Self.narrowed(declared, to: Self.union(of: branches, in: root))
                }
            }
        }
        (self.parts, self.allowsNull) = (parts, allowsNull)
        declaredTypes = allowsNull ? declared?.union(.null) : declared
    }

    /// The types that the value may have by `type`, `enum` and `const`; nil if the schema says nothing.
    package var types: JSONTypes? {
        let types = parts.reduce(declaredTypes) { types, part in
            let allowed = Self.allowedValues(of: part)
            guard !allowed.isEmpty else { return types }
            return Self.narrowed(types, to: allowed.reduce(into: []) { $0.formUnion(JSONTypes(of: $1)) })
        }
        return allowsNull ? types?.union(.null) : types
    }

    /// The schema of a member of an object; nil if no part declares the member.
    package func member(_ name: String) -> JSONSchemaNode? {
        let schemas = parts.compactMap { $0["properties"]?[name] }
        return schemas.isEmpty ? nil : JSONSchemaNode(schemas, in: root)
    }

    /// The schema of the elements of an array. With `prefixItems`, `items` is for the elements after those.
    var items: JSONSchemaNode? {
        let schemas = parts.compactMap { $0["prefixItems"] == nil ? $0["items"] : nil }.filter { $0.object != nil }
        return schemas.isEmpty ? nil : JSONSchemaNode(schemas, in: root)
    }

    /// The names of the declared members.
    var names: [String] { parts.flatMap { $0["properties"]?.object?.members.map(\.name) ?? [] } }

    func isRequired(_ name: String) -> Bool {
        parts.contains { $0["required"]?.array?.contains(.string(name)) == true }
    }

    /// The values of `const` or `enum`; empty if every value is allowed.
    static func allowedValues(of part: JSONObject) -> [JSON] { part["const"].map { [$0] } ?? part["enum"]?.array ?? [] }

    private static func narrowed(_ types: JSONTypes?, to others: JSONTypes?) -> JSONTypes? {
        guard let types, let others else { return types ?? others }
        return types.intersection(others)
    }

    private static func union(of branches: [JSON], in root: JSON) -> JSONTypes? {
        guard !branches.isEmpty, branches.count <= limit else { return nil }
        var union: JSONTypes = []
        for branch in branches {
            // Branches of branches would grow exponentially.
            guard let types = JSONSchemaNode([branch], in: root, followsBranches: false).types else { return nil }
            union.formUnion(types)
        }
        return union
    }

    private static func isNull(_ schema: JSON) -> Bool {
        schema["type"] == "null" || schema["const"] == .null || schema["enum"] == [.null]
    }

    /// Returns the schema that a reference inside the document names, such as `#/$defs/name`.
    private static func target(of reference: JSON, in root: JSON) -> JSON? {
        guard let text = reference.string, text.first == "#" else { return nil }
        return text == "#" ? root : JSONPointer(String(text.dropFirst()))?.value(in: root)
    }
}
