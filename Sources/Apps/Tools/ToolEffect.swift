import Model

/// The effect of a request on an app, as far as Patchbay knows.
enum ToolEffect: Hashable, Sendable {
    /// The request changes nothing in the app.
    case readOnly
    /// The request may change the app. Also the effect of unlisted tools and of unknown methods.
    case changing

    /// Determines the effect of a request.
    ///
    /// - Parameters:
    ///   - request: The request to the app.
    ///   - annotations: The listed annotations of the called tool. An app knows its own tools, so its word is final.
    ///   - kind: The kind of the app's endpoint.
    init(of request: MCPRequest, _ annotations: ToolAnnotations, on kind: EndpointKind) {
        self = Self.isReadOnly(request, annotations, kind) ? .readOnly : .changing
    }

    private static func isReadOnly(
        _ request: MCPRequest,
        _ annotations: ToolAnnotations,
        _ kind: EndpointKind
    ) -> Bool {
        guard request.method == "tools/call" else { return readOnlyMethods.contains(request.method) }
        guard let tool = request.tool, !toolsThatCallTools.contains(tool) else { return false }
        return annotations.isReadOnly ?? (kind == .appreveal && appRevealTools.contains(tool))
    }

    /// The methods of MCP that change nothing in a server, apart from what the client itself is sent.
    private static let readOnlyMethods: Set = [
        "tools/list", "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
        "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
    ]

    /// Tools that call other tools, which may change the app. AppReveal's `batch` gets them as its arguments.
    private static let toolsThatCallTools: Set = ["batch"]

    /// AppReveal lists its tools without annotations. These only read, according to its reference (docs/tools.md).
    private static let appRevealTools: Set = [
        "device_info", "find_dom_text", "get_dom_forms", "get_dom_headings", "get_dom_images", "get_dom_interactive",
        "get_dom_links", "get_dom_summary", "get_dom_tables", "get_dom_text", "get_dom_tree", "get_elements",
        "get_feature_flags", "get_logs", "get_menu_bar", "get_navigation_stack", "get_network_call_detail",
        "get_network_calls", "get_recent_errors", "get_screen", "get_state", "get_view_tree", "get_webviews",
        "launch_context", "list_windows", "query_dom", "screenshot",
    ]
}
