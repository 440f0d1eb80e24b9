/// The timeouts of the proxy: its waits, and the limits of responses.
package struct UpstreamTimeouts: Hashable, Sendable {
    /// The default wait time for an unreachable app.
    package var wait: Duration = .seconds(10)
    /// The timeout for a live list if a cached one exists.
    package var list: Duration = .seconds(2)
    /// The timeout for each app in the aggregated list.
    package var aggregatedList: Duration = .seconds(1)
    /// The limits of a response, unless a message has its own.
    var response = ResponseLimits()
    /// The idle timeout of a change stream, which is silent most of the time. After the timeout the stream is opened
    /// again, which detects a lost device.
    package var changeStreamIdle: Duration = .seconds(300)
    /// The timeout for a client's answer to a request of the app.
    package var clientAnswer: Duration = .seconds(300)

    /// The longest time for the response of an app, if the request has no timeout of its own.
    package static let longestResponse = ResponseLimits().total

    package init() {}
}

extension ResponseLimits {
    /// For handshake requests, which are cheap to answer.
    static let handshake = ResponseLimits(idle: .seconds(5), total: .seconds(10), bytes: 1_048_576)

    /// For a change stream.
    static func changeStream(idle: Duration) -> ResponseLimits {
        ResponseLimits(idle: idle, total: .seconds(86_400), bytes: .max)
    }

    /// For a change stream over a line transport, where a lost connection is visible. Notifications arrive outside the
    /// response there.
    static let lineChangeStream = ResponseLimits(idle: .seconds(86_400), total: .seconds(86_400), bytes: .max)

    /// For a server that may ignore an unknown method.
    static let discovery = ResponseLimits(idle: .seconds(2), total: .seconds(2), bytes: 1_048_576)
}
