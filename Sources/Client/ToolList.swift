package import JSON

/// What an app offers to agents.
package struct ToolList: Hashable, Sendable {
    /// As the app wrote them, sorted by name.
    package let tools: [JSONObject]
    /// From an earlier time: the app is away.
    package let isStale: Bool
    /// Other than when somebody last looked at it.
    package let hasChanged: Bool

    package init(tools: [JSONObject], isStale: Bool = false, hasChanged: Bool = false) {
        self.tools = tools
        self.isStale = isStale
        self.hasChanged = hasChanged
    }

    package func tool(named name: String) -> JSONObject? { tools.first { $0["name"] == .string(name) } }
}
