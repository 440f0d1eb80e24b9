package import JSON
package import Model

/// The apps' own servers, as the broker's tools, its URLs and its HTTP API reach them.
package protocol Apps: Sendable {
    /// What an app offers, from the cache while the app is away.
    ///
    /// - Throws: `AppFailure` when it was never heard, or must not be asked.
    func tools(of endpoint: Endpoint, for caller: AgentCaller) async throws(AppFailure) -> AppTools

    /// How many tools an app has, as far as that is known; it is not asked.
    func toolCount(of endpoint: Endpoint) async -> Int?

    /// Calls one tool of an app, and waits for an app that is on its way back.
    ///
    /// - Returns: A `CallToolResult`. Everything that can go wrong is one with `isError`, whose text says what happened and
    ///   what to do; so is what is not allowed.
    func call(_ call: AppCall, of caller: AgentCaller) async -> JSONObject
}
