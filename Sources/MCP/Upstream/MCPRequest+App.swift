import JSON

/// What counts when it is an app that is asked.
extension MCPRequest {
    /// What it is for the audit log: a tool's name, else the method.
    var subject: String { tool ?? method }

    /// Whether the app may get it twice; only what it says of a tool allows that of a call.
    func mayRepeat(_ traits: ToolAnnotations) -> Bool { tool == nil || traits.mayRepeat }

    /// The tool that it calls, if it calls one.
    var tool: String? { method == "tools/call" ? params["name"]?.string : nil }
}
