import Model

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
    /// The app's own name of a tool that is listed under another one; nil if the names are the same.
    let originalName: String?

    /// Returns whether a request may be sent to the app twice. A tool call may be repeated only if the tool's annotations
    /// allow that.
    func mayRepeat(_ request: MCPRequest) -> Bool { request.tool == nil || mayRepeat }

    /// The annotations of an unlisted tool.
    static let unknown = ToolAnnotations(of: [:])

    init(of tool: JSONObject) {
        let hints = tool["annotations"]
        let name = tool["name"]?.string
        isReadOnly = hints?["readOnlyHint"]?.bool
        mayRepeat = isReadOnly == true || hints?["idempotentHint"] == true
        parameters = ParameterHeaders(of: tool["inputSchema"])
        offersJPEG = MCPRequest.offersJPEG(tool)
        let original = tool["_meta"]?[ToolNamespace.originalNameKey]?.string
        // The app may have written the member.
        originalName = original.flatMap { $0 != name && ToolNamespace.safeName(of: $0) == name ? $0 : nil }
    }

    /// Returns the non-default annotations of a tool list by the bytes of the tool's name.
    static func all(in list: JSONObject) -> [[UInt8]: ToolAnnotations] {
        var annotations: [[UInt8]: ToolAnnotations] = [:]
        for case .object(let tool) in list["tools"]?.array ?? [] {
            let annotation = ToolAnnotations(of: tool)
            // Tools with default annotations are not stored.
            if annotation != unknown, let name = tool["name"]?.string { annotations[Array(name.utf8)] = annotation }
        }
        return annotations
    }
}
