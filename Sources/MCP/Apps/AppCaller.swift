package import JSON
package import Model
package import AccessControl

/// The apps' own servers, as the broker's tools, its URLs and its HTTP API reach them.
package protocol AppCaller: Sendable {
    /// What an app offers, from the cache while the app is away.
    ///
    /// - Throws: `AppError` when it was never heard, or must not be asked.
    func tools(of endpoint: Endpoint, for caller: AgentCaller) async throws(AppError) -> CachedToolList

    /// How many tools an app has, as far as that is known; it is not asked.
    func toolCount(of endpoint: Endpoint) async -> Int?

    /// Whether an app that is there takes a secret as its own; it is kept nowhere for that.
    ///
    /// - Returns: Nil where the app cannot be asked now.
    func takes(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool?

    /// Whether an app lets this caller in now, with the secret that is held for it or without one.
    ///
    /// - Returns: Nil where the app cannot be asked now.
    func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool?

    /// Whether this launch of an app has said that it wants another token than it was shown; it is not asked.
    func wantsSecret(_ endpoint: Endpoint) -> Bool

    /// Calls one tool of an app, and waits for an app that is on its way back.
    ///
    /// - Returns: A `CallToolResult`; what the app itself refuses is one with `isError`.
    /// - Throws: `AppError` when there is no answer of the app's, or it must not be asked.
    func call(_ call: ToolCall, of caller: AgentCaller) async throws(AppError) -> JSONObject
}
