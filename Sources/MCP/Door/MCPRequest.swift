package import JSON

/// A request to a server, without what belongs to the era it came in.
package struct MCPRequest: Sendable {
    package let method: String
    /// Without the protocol's own members of `_meta`; a `progressToken` is taken out too.
    package private(set) var params: JSONObject
    /// What the caller can do for an app that asks back.
    package let capabilities: JSONObject
    /// The gravest log messages that the caller can do without are those below this level (RFC 5424's names); nil for one
    /// that wants none.
    package let logLevel: String?
    /// How an app asks the caller something while the request runs; nil where it cannot.
    package let wayBack: ClientRequester?
    /// Whether the caller takes a question as a result and asks again with the answer (2026-07-28).
    package let mayAskAgain: Bool
    /// How long it may take in all; nil for as long as is usual.
    package private(set) var patience: Duration?
    /// Passes on what is told while the request runs: `notifications/progress` (without its token, which the door adds) and
    /// `notifications/message`. Nil where the caller asked for none.
    package let notify: (@Sendable (RPCNotification) -> Void)?

    package init(
        _ method: String,
        _ params: JSONObject = [:],
        capabilities: JSONObject = [:],
        logLevel: String? = nil,
        wayBack: ClientRequester? = nil,
        mayAskAgain: Bool = false,
        patience: Duration? = nil,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) {
        self.method = method
        self.params = params
        self.capabilities = capabilities
        self.logLevel = logLevel
        self.wayBack = wayBack
        self.mayAskAgain = mayAskAgain
        self.patience = patience
        self.notify = notify
    }

    /// The same, for which the app has so long.
    func with(patience: Duration) -> MCPRequest {
        var request = self
        request.patience = patience
        return request
    }

    /// The same with other parameters.
    func with(_ params: JSONObject) -> MCPRequest {
        var request = self
        request.params = params
        return request
    }
}
