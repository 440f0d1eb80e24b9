package import JSON

/// What an app offers to agents.
package struct ToolList: Hashable, Sendable {
    /// As the app wrote them, sorted by name.
    package let tools: [JSONObject]
    /// From an earlier time: the app does not say it now.
    package let isStale: Bool
    /// Why not, and what to do about it.
    package let reason: String?
    package let next: String?
    /// Other than when somebody last looked at it.
    package let hasChanged: Bool

    package init(
        tools: [JSONObject],
        isStale: Bool = false,
        hasChanged: Bool = false,
        reason: String? = nil,
        next: String? = nil
    ) {
        self.tools = tools
        self.isStale = isStale
        self.hasChanged = hasChanged
        (self.reason, self.next) = (reason, next)
    }

    package func tool(named name: String) -> JSONObject? { tools.first { $0["name"] == .string(name) } }
}
