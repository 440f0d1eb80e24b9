package import Model

/// The arguments of a tool that a client of 2026-07-28 must repeat as `Mcp-Param-…` headers.
///
/// They are the properties of the tool's input schema with the key `x-mcp-header`.
package struct ParameterHeaders: Hashable, Sendable {
    private struct Declaration: Hashable, Sendable {
        let header: String
        let path: [String]
        let type: String?
    }

    private static let extensionKey = "x-mcp-header"
    /// Without `number`: implementations write floating-point numbers differently.
    private static let types: Set = ["string", "integer", "boolean"]

    /// The maximum depth of a schema that is searched, and the maximum number of headers of one tool.
    private static let maxDepth = 16
    private static let limit = 32

    package static let none = ParameterHeaders(of: nil)

    private let declarations: [Declaration]
    /// True if every `x-mcp-header` is at a place and of a type that the specification allows. Clients ignore tools
    /// with an invalid one.
    private let isValid: Bool

    /// Collects the declarations of a schema.
    ///
    /// - Parameter schema: A tool's `inputSchema`.
    init(of schema: JSON?) {
        var found: [Declaration] = []
        Self.collect(schema, at: [], into: &found)
        declarations = found
        // Most tools declare no header. Their schemas are searched only once.
        isValid =
            !found.isEmpty && Self.countMarks(in: schema) == found.count
            && found.allSatisfy { $0.type.map(Self.types.contains) ?? false }
    }

    private static func collect(_ schema: JSON?, at path: [String], into declarations: inout [Declaration]) {
        guard path.count < maxDepth, let properties = schema?["properties"]?.object else { return }
        for property in properties.members {
            let path = path + [property.name]
            if let name = property.value[extensionKey]?.string, isToken(name),
                !declarations.contains(where: { $0.header.lowercased() == name.lowercased() }),
                declarations.count < limit
            {
                let type = property.value["type"]?.string
                declarations.append(Declaration(header: name, path: path, type: type))
            }
            collect(property.value, at: path, into: &declarations)
        }
    }

    /// Counts the `x-mcp-header` keys of a schema at any place.
    private static func countMarks(in schema: JSON?, _ depth: Int = 0) -> Int {
        guard depth < 4 * maxDepth else { return .max / 2 }
        return switch schema {
        case .object(let object):
            object.members.reduce(object[extensionKey] == nil ? 0 : 1) { $0 + countMarks(in: $1.value, depth + 1) }
        case .array(let elements): elements.reduce(0) { $0 + countMarks(in: $1, depth + 1) }
        default: 0
        }
    }

    /// Returns the headers for the arguments of a call. Arguments that are absent, null, arrays or objects have none.
    func headers(for arguments: JSON?) -> [(name: String, value: String)] {
        declarations.compactMap { declaration in
            let value = declaration.path.reduce(arguments) { $0?[$1] }
            return value.flatMap(Self.text).map { ("Mcp-Param-\(declaration.header)", HeaderEncoding.encode($0)) }
        }
    }

    /// Compares the arguments of a call with its headers (MCP 2026-07-28, server behavior for custom headers).
    ///
    /// - Parameters:
    ///   - arguments: The arguments of the call.
    ///   - sent: Returns every value of the header of a name in lower case.
    /// - Returns: The error to respond with; nil if the headers agree with the arguments.
    package func mismatch(with arguments: JSON?, _ sent: (String) -> [String]) -> RPCError? {
        guard isValid else { return nil }
        for declaration in declarations {
            let header = "Mcp-Param-\(declaration.header)"
            let values = sent(header.lowercased())
            guard values.count <= 1 else { return .headerMismatch("the header \(header) is repeated") }
            let value = declaration.path.reduce(arguments) { $0?[$1] }.flatMap(Self.text)
            switch (value, values.first.map(HeaderEncoding.decode)) {
            case (nil, nil): continue
            case (_?, nil): return .headerMismatch("the header \(header) is missing")
            case (let value?, .some(let sent?)) where Self.areEqual(value, sent, type: declaration.type): continue
            default: return .headerMismatch("the header \(header) contradicts the body")
            }
        }
        return nil
    }

    private static func areEqual(_ value: String, _ sent: String, type: String?) -> Bool {
        if value == sent { return true }
        guard type == "integer", let number = integer(value) else { return false }
        return number == integer(sent)
    }

    /// Returns the canonical form of an integer, so that 42, 42.0 and 042 are equal. Returns nil for numbers with an
    /// exponent or a fraction.
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

    /// Returns whether a name is an HTTP token (RFC 9110, section 5.6.2).
    private static func isToken(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count) && name.utf8.allSatisfy(\.isTokenByte)
    }
}
