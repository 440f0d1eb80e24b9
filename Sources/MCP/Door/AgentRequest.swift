package import JSON

/// A request to a server, without what belongs to the era it came in.
package struct AgentRequest: Sendable {
    package let method: String
    /// Without the protocol's own members of `_meta`; a `progressToken` is taken out too.
    package let params: JSONObject
    /// What the caller can do for an app that asks back (2026-07-28, multi round-trip requests); empty in the eras before.
    package let capabilities: JSONObject
    /// Passes on what is told while the request runs: `notifications/progress` (without its token, which the door adds) and
    /// `notifications/message`. Nil where the caller asked for none.
    package let notify: (@Sendable (RPCNotification) -> Void)?

    package init(
        _ method: String,
        _ params: JSONObject = [:],
        capabilities: JSONObject = [:],
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) {
        self.method = method
        self.params = params
        self.capabilities = capabilities
        self.notify = notify
    }
}
