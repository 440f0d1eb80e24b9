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

/// How long apps are waited for.
package struct UpstreamTimeouts: Hashable, Sendable {
    /// For an app that is away, by itself.
    package var wait: Duration = .seconds(10)
    /// For a list that is known from an earlier time.
    package var list: Duration = .seconds(2)
    /// For each app where all are listed together.
    package var oneOfAll: Duration = .seconds(1)
    /// For an answer, while nothing comes, and altogether.
    package var silence: Duration = .seconds(15)
    package var longest: Duration = .seconds(120)
    /// For a word on a stream of changes, which is most of the time silent. A phone that went without one shows by it, as then
    /// the stream is opened anew.
    package var listening: Duration = .seconds(300)

    /// For a caller's answer to what an app asks it.
    package var question: Duration = .seconds(300)

    package init() {}

    var upstream: UpstreamLimits { UpstreamLimits(silence: silence, longest: longest) }
}

/// What an app may take of us while it answers.
struct UpstreamLimits: Hashable, Sendable {
    /// How long nothing may come: neither bytes of an answer nor a message on its stream.
    var silence: Duration = .seconds(15)
    /// How long the whole may take, however much it tells on the way.
    var longest: Duration = .seconds(120)
    /// The most bytes of one answer.
    var bytes = 32 * 1_048_576

    /// For questions that are answered without work.
    static let introduction = UpstreamLimits(silence: .seconds(5), longest: .seconds(10), bytes: 1_048_576)

    /// For a stream on which an app tells of changes.
    static func listening(for silence: Duration) -> UpstreamLimits {
        UpstreamLimits(silence: silence, longest: .seconds(86_400), bytes: .max)
    }

    /// The same on a stream of lines, whose end shows: what it is told comes beside it, and not as its answer.
    static let following = UpstreamLimits(silence: .seconds(86_400), longest: .seconds(86_400), bytes: .max)

    /// For a server that may not answer at all to what it does not know.
    static let greeting = UpstreamLimits(silence: .seconds(2), longest: .seconds(2), bytes: 1_048_576)
}
