import JSON

/// Lets through what clients take for a tool, and each name once.
///
/// One entry that is none takes the whole list from some clients (the SDKs check every entry, and throw), and two tools of one name
/// are refused by the models' APIs together with the request that they came with. What is as MCP's schema has it passes as it is.
struct ToolListSanitizer {
    private var names: Set<[UInt8]> = []

    /// What passes of a whole list.
    static func pass(_ entries: [JSON]) -> [JSON] {
        var sieve = ToolListSanitizer()
        return entries.compactMap { sieve.pass($0) }
    }

    /// - Returns: Nil for what is no object, has no name, or has one that was there before; optional members that are of another
    ///   kind than they must be are left out, and a schema for the arguments is put where there is none.
    mutating func pass(_ entry: JSON) -> JSON? {
        guard var tool = entry.object, let name = tool["name"]?.string, !name.isEmpty,
            // In bytes: to a set of strings é is the same as e and its accent.
            names.insert(Array(name.utf8)).inserted
        else { return nil }
        var schema = tool["inputSchema"]?.object ?? [:]
        // Arguments are an object always; TypeScript's SDK wants to read it.
        if schema["type"] != "object" { schema["type"] = "object" }
        tool["inputSchema"] = .object(schema)
        Self.sift(&tool) { name, value in
            switch name {
            case "title", "description": value.string != nil
            case "outputSchema", "annotations", "execution", "_meta": value.object != nil
            case "icons": value.array != nil
            default: true
            }
        }
        if var annotations = tool["annotations"]?.object {
            Self.sift(&annotations) { name, value in
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

    private static func sift(_ object: inout JSONObject, _ isRight: (String, JSON) -> Bool) {
        for member in object.members where !isRight(member.name, member.value) { object[member.name] = nil }
    }
}

/// What a tool's own description says that matters for the way it is called.
struct ToolAnnotations: Hashable, Sendable {
    /// The app says that calling it twice is as good as once. Its word counts, as it is the one that is called.
    let mayRepeat: Bool
    let parameters: ParameterHeaders
    /// It takes screenshots, as JPEG too if that is asked for.
    let offersJPEG: Bool

    /// Nothing is known of it.
    static let unknown = ToolAnnotations(of: [:])

    init(of tool: JSONObject) {
        let hints = tool["annotations"]
        mayRepeat = hints?["readOnlyHint"] == true || hints?["idempotentHint"] == true
        parameters = ParameterHeaders(of: tool["inputSchema"])
        offersJPEG = MCPRequest.offersJPEG(tool)
    }

    static func all(in list: JSONObject) -> [String: ToolAnnotations] {
        var traits: [String: ToolAnnotations] = [:]
        for case .object(let tool) in list["tools"]?.array ?? [] {
            let trait = ToolAnnotations(of: tool)
            // The usual tool needs no entry.
            if trait != unknown, let name = tool["name"]?.string { traits[name] = trait }
        }
        return traits
    }
}
