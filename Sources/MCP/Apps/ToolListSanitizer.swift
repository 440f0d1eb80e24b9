import JSON

/// Keeps the valid tools of a list, and each name once.
///
/// Some clients reject a whole list for one invalid entry, because the SDKs validate every entry. The models' APIs
/// reject requests with duplicate tool names. Entries that match MCP's schema are not changed.
struct ToolListSanitizer {
    private var names: Set<[UInt8]> = []

    /// Sanitizes a whole list.
    static func sanitize(_ entries: [JSON]) -> [JSON] {
        var sanitizer = ToolListSanitizer()
        return entries.compactMap { sanitizer.sanitize($0) }
    }

    /// Sanitizes one entry: removes optional members of the wrong type and adds a missing schema.
    ///
    /// - Returns: Nil for an entry without a name, with a duplicate name, or of another type.
    mutating func sanitize(_ entry: JSON) -> JSON? {
        guard var tool = entry.object, let name = tool["name"]?.string, !name.isEmpty,
            // Compared as bytes: a set of Swift strings treats é as equal to e with a combining accent.
            names.insert(Array(name.utf8)).inserted
        else { return nil }
        var schema = tool["inputSchema"]?.object ?? [:]
        // Arguments are always an object, and the TypeScript SDK requires the type.
        if schema["type"] != "object" { schema["type"] = "object" }
        tool["inputSchema"] = .object(schema)
        Self.removeMembers(&tool) { name, value in
            switch name {
            case "title", "description": value.string != nil
            case "outputSchema", "annotations", "execution", "_meta": value.object != nil
            case "icons": value.array != nil
            default: true
            }
        }
        if var annotations = tool["annotations"]?.object {
            Self.removeMembers(&annotations) { name, value in
                switch name {
                case "title": value.string != nil
                case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint": value.bool != nil
                default: true
                }
            }
            tool["annotations"] = .object(annotations)
        }
        return .object(tool)
    }

    private static func removeMembers(_ object: inout JSONObject, unless isValid: (String, JSON) -> Bool) {
        for member in object.members where !isValid(member.name, member.value) { object[member.name] = nil }
    }
}

/// The parts of a tool's declaration that affect how it is called.
struct ToolAnnotations: Hashable, Sendable {
    /// Indicates whether the app declares the tool read-only or idempotent. Only the called app itself is affected if
    /// this is wrong.
    let mayRepeat: Bool
    /// Indicates whether the app declares the tool read-only; nil without a declaration.
    let isReadOnly: Bool?
    let parameters: ParameterHeaders
    /// Indicates whether the tool takes screenshots and supports JPEG.
    let offersJPEG: Bool

    /// The annotations of an unlisted tool.
    static let unknown = ToolAnnotations(of: [:])

    init(of tool: JSONObject) {
        let hints = tool["annotations"]
        isReadOnly = hints?["readOnlyHint"]?.bool
        mayRepeat = isReadOnly == true || hints?["idempotentHint"] == true
        parameters = ParameterHeaders(of: tool["inputSchema"])
        offersJPEG = MCPRequest.offersJPEG(tool)
    }

    /// Returns the non-default annotations of a tool list by tool name.
    static func all(in list: JSONObject) -> [String: ToolAnnotations] {
        var annotations: [String: ToolAnnotations] = [:]
        for case .object(let tool) in list["tools"]?.array ?? [] {
            let annotation = ToolAnnotations(of: tool)
            // Tools with default annotations are not stored.
            if annotation != unknown, let name = tool["name"]?.string { annotations[name] = annotation }
        }
        return annotations
    }
}
