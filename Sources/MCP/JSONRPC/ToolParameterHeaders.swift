import JSON

/// The arguments of a tool that a client of 2026-07-28 has to repeat as `Mcp-Param-…` headers: properties of the tool's input
/// schema that say `x-mcp-header`.
package struct ParameterHeaders: Hashable, Sendable {
    private struct Declaration: Hashable, Sendable {
        let header: String
        let path: [String]
        let type: String?
    }

    private static let mark = "x-mcp-header"
    /// A number's text is not the same everywhere.
    private static let types: Set = ["string", "integer", "boolean"]

    /// How deep a schema is looked into, and how many headers one tool may have.
    private static let deepest = 16
    private static let limit = 32

    package static let none = ParameterHeaders(of: nil)

    private let declarations: [Declaration]
    /// Every mark is where and as the specification wants it; clients leave tools out of which that is not true.
    private let isProper: Bool

    /// - Parameter schema: A tool's `inputSchema`.
    init(of schema: JSON?) {
        var found: [Declaration] = []
        Self.collect(schema, [], &found)
        declarations = found
        // Most tools have none, and their schemas are not looked through again.
        isProper =
            !found.isEmpty && Self.marks(in: schema) == found.count
            && found.allSatisfy { $0.type.map(Self.types.contains) ?? false }
    }

    private static func collect(_ schema: JSON?, _ path: [String], _ declarations: inout [Declaration]) {
        guard path.count < deepest, let properties = schema?["properties"]?.object else { return }
        for property in properties.members {
            let path = path + [property.name]
            if let name = property.value[mark]?.string, isToken(name),
                !declarations.contains(where: { $0.header.lowercased() == name.lowercased() }),
                declarations.count < limit
            {
                let type = property.value["type"]?.string
                declarations.append(Declaration(header: name, path: path, type: type))
            }
            collect(property.value, path, &declarations)
        }
    }

    /// How often a schema says it, at whatever place.
    private static func marks(in schema: JSON?, _ depth: Int = 0) -> Int {
        guard depth < 4 * deepest else { return .max / 2 }
        return switch schema {
        case .object(let object):
            object.members.reduce(object[mark] == nil ? 0 : 1) { $0 + marks(in: $1.value, depth + 1) }
        case .array(let elements): elements.reduce(0) { $0 + marks(in: $1, depth + 1) }
        default: 0
        }
    }

    /// Nothing for what is absent, null, or no text, number or truth value.
    func headers(for arguments: JSON?) -> [(name: String, value: String)] {
        declarations.compactMap { declaration in
            let value = declaration.path.reduce(arguments) { $0?[$1] }
            return value.flatMap(Self.text).map { ("Mcp-Param-\(declaration.header)", HeaderValue.encode($0)) }
        }
    }

    /// Compares arguments with the headers that came beside them (MCP 2026-07-28, server behavior for custom headers).
    ///
    /// - Parameters:
    ///   - arguments: Of the call.
    ///   - sent: Every value of the header of that name, which is in lower case.
    /// - Returns: What is wrong with the headers; nil where both say the same.
    func mismatch(with arguments: JSON?, _ sent: (String) -> [String]) -> RPCError? {
        guard isProper else { return nil }
        for declaration in declarations {
            let header = "Mcp-Param-\(declaration.header)"
            let values = sent(header.lowercased())
            guard values.count <= 1 else { return .mismatch("the header \(header) comes twice") }
            let value = declaration.path.reduce(arguments) { $0?[$1] }.flatMap(Self.text)
            switch (value, values.first.map(HeaderEncoding.decode)) {
            case (nil, nil): continue
            case (_?, nil): return .mismatch("the header \(header) is missing")
            case (let value?, .some(let said?)) where Self.same(value, said, declaration.type): continue
            default: return .mismatch("the header \(header) is not what the body says")
            }
        }
        return nil
    }

    private static func same(_ value: String, _ said: String, _ type: String?) -> Bool {
        if value == said { return true }
        guard type == "integer", let number = integer(value) else { return false }
        return number == integer(said)
    }

    /// 42, 42.0 and 042 are one number; with an exponent it is none that is compared.
    private static func integer(_ text: String) -> String? {
        let parts = text.dropFirst(text.hasPrefix("-") ? 1 : 0).split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, !whole.isEmpty, parts.count <= 2, whole.allSatisfy({ ("0"..."9").contains($0) }),
            parts.count == 1 || (!parts[1].isEmpty && parts[1].allSatisfy { $0 == "0" })
        else { return nil }
        let digits = whole.drop { $0 == "0" }
        return digits.isEmpty ? "0" : (text.hasPrefix("-") ? "-" : "") + digits
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
