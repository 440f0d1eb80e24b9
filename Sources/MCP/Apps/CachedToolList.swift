package import JSON

/// The list of an app's tools.
package struct CachedToolList: Hashable, Sendable {
    /// As the app wrote them, sorted by name.
    package let tools: [JSONObject]
    /// Why it is from an earlier time; nil where the app has just said it.
    package let staleness: AppError?
    /// Other than at the time when somebody last looked at it.
    package let hasChanged: Bool

    package init(tools: [JSONObject], staleness: AppError? = nil, hasChanged: Bool = false) {
        self.tools = tools
        self.staleness = staleness
        self.hasChanged = hasChanged
    }

    package var isStale: Bool { staleness != nil }
}
