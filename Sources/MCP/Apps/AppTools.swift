package import JSON

/// The list of an app's tools.
package struct AppTools: Hashable, Sendable {
    /// As the app wrote them, sorted by name.
    package let tools: [JSONObject]
    /// From an earlier time: the app is away.
    package let isStale: Bool
    /// Other than at the time when somebody last looked at it.
    package let hasChanged: Bool

    package init(tools: [JSONObject], isStale: Bool = false, hasChanged: Bool = false) {
        self.tools = tools
        self.isStale = isStale
        self.hasChanged = hasChanged
    }
}
