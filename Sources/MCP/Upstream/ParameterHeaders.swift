import JSON

/// The arguments of a tool that a client of 2026-07-28 has to repeat as `Mcp-Param-…` headers: properties of the tool's input
/// schema that say `x-mcp-header`.
struct ParameterHeaders: Hashable, Sendable {
    private struct Declaration: Hashable, Sendable {
        let header: String
        let path: [String]
    }

    /// How deep a schema is looked into, and how many headers one tool may have.
    private static let deepest = 16
    private static let limit = 32

    private var declarations: [Declaration] = []

    var isEmpty: Bool { declarations.isEmpty }

    /// - Parameter schema: A tool's `inputSchema`.
    init(of schema: JSON?) { collect(schema, []) }

    private mutating func collect(_ schema: JSON?, _ path: [String]) {
        guard path.count < Self.deepest, let properties = schema?["properties"]?.object else { return }
        for property in properties.members {
            let path = path + [property.name]
            if let name = property.value["x-mcp-header"]?.string, Self.isToken(name),
                !declarations.contains(where: { $0.header.lowercased() == name.lowercased() }),
                declarations.count < Self.limit
            {
                declarations.append(Declaration(header: name, path: path))
            }
            collect(property.value, path)
        }
    }

    /// Nothing for what is absent, null, or no text, number or truth value.
    func headers(for arguments: JSON?) -> [(name: String, value: String)] {
        declarations.compactMap { declaration in
            let value = declaration.path.reduce(arguments) { $0?[$1] }
            return value.flatMap(Self.text).map { ("Mcp-Param-\(declaration.header)", HeaderValue.encode($0)) }
        }
    }

    private static func text(_ value: JSON) -> String? {
        switch value {
        case .string(let text): text
        case .number(let number): number.text
        case .bool(let isTrue): isTrue ? "true" : "false"
        case .null, .array, .object: nil
        }
    }

    /// RFC 9110, section 5.6.2.
    private static func isToken(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}
