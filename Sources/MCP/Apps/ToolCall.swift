package import JSON
package import Model

/// A call of an app's tool.
package struct ToolCall: Sendable {
    package let endpoint: Endpoint
    package let tool: String
    package let arguments: JSONObject
    /// How long to wait for an app that is away, 10 s by itself.
    package let wait: Duration
    /// How long the call may take in all; nil for 15 s of silence: an app at a breakpoint says nothing.
    package let patience: Duration?
    /// The longest edge of an image in the result; 0 for the original, as a link.
    package let maxPixels: Int
    package let notify: (@Sendable (RPCNotification) -> Void)?

    package init(
        _ tool: String,
        of endpoint: Endpoint,
        arguments: JSONObject = [:],
        wait: Duration = .seconds(10),
        patience: Duration? = nil,
        maxPixels: Int = 1_568,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) {
        self.endpoint = endpoint
        self.tool = tool
        self.arguments = arguments
        self.wait = wait
        self.patience = patience
        self.maxPixels = maxPixels
        self.notify = notify
    }
}
