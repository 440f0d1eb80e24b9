package import JSON
package import Model

/// A call of an app's tool.
package struct ToolCall: Sendable {
    package let endpoint: Endpoint
    package let tool: String
    package let arguments: JSONObject
    /// The wait time for an unreachable app; 10 s by default.
    package let wait: Duration
    /// The timeout of the whole call; nil means 15 s without a byte, since an app at a breakpoint is silent.
    package let timeout: Duration?
    /// The maximum image edge in the result, in pixels; 0 keeps the original, as a link.
    package let maxPixels: Int
    package let notify: (@Sendable (RPCNotification) -> Void)?

    package init(
        _ tool: String,
        of endpoint: Endpoint,
        arguments: JSONObject = [:],
        wait: Duration = .seconds(10),
        timeout: Duration? = nil,
        maxPixels: Int = 1_568,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) {
        self.endpoint = endpoint
        self.tool = tool
        self.arguments = arguments
        self.wait = wait
        self.timeout = timeout
        self.maxPixels = maxPixels
        self.notify = notify
    }
}

/// The timeouts for requests to apps.
package struct UpstreamTimeouts: Hashable, Sendable {
    /// The default wait time for an unreachable app.
    package var wait: Duration = .seconds(10)
    /// The timeout for a live list if a cached one exists.
    package var list: Duration = .seconds(2)
    /// The timeout for each app in the aggregated list.
    package var aggregatedList: Duration = .seconds(1)
    /// The idle and the total timeout of a response.
    package var idle: Duration = .seconds(15)
    package var total: Duration = .seconds(120)
    /// The idle timeout of a change stream, which is silent most of the time. After the timeout the stream is opened
    /// again, which detects a lost device.
    package var changeStreamIdle: Duration = .seconds(300)

    /// The timeout for a client's answer to a request of the app.
    package var clientAnswer: Duration = .seconds(300)

    package init() {}

    var upstream: UpstreamLimits { UpstreamLimits(idle: idle, total: total) }
}

/// The time and size limits of one response.
struct UpstreamLimits: Hashable, Sendable {
    /// The idle timeout: without bytes of a response and without a message on its stream.
    var idle: Duration = .seconds(15)
    /// The total timeout, progress notifications included.
    var total: Duration = .seconds(120)
    /// The maximum size of a response in bytes.
    var bytes = 32 * 1_048_576

    /// For handshake requests, which are cheap to answer.
    static let handshake = UpstreamLimits(idle: .seconds(5), total: .seconds(10), bytes: 1_048_576)

    /// For a change stream.
    static func changeStream(idle: Duration) -> UpstreamLimits {
        UpstreamLimits(idle: idle, total: .seconds(86_400), bytes: .max)
    }

    /// For a change stream over a line transport, where a lost connection is visible. Notifications arrive outside the
    /// response there.
    static let lineChangeStream = UpstreamLimits(idle: .seconds(86_400), total: .seconds(86_400), bytes: .max)

    /// For a server that may ignore an unknown method.
    static let discovery = UpstreamLimits(idle: .seconds(2), total: .seconds(2), bytes: 1_048_576)
}
