import JSON

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
