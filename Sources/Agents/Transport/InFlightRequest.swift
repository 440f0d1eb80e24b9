import Apps
import Model
import Synchronization

/// A request that a handler is answering: its notifications, its outcome, and everything that can end it early.
///
/// The response is plain JSON if no event precedes the result. Otherwise it is an event stream that starts with the
/// first event.
final class InFlightRequest: Sendable {
    /// The end of a request.
    enum Outcome: Sendable {
        case completed(JSON, status: Int)
        /// The client cancelled the request.
        case cancelled
        /// The client has disconnected.
        case disconnected
    }

    /// The outcome of the request; nil while it runs.
    private let outcome = Mutex<Outcome?>(nil)
    private let events = ResponseEvents()
    private let httpRequest: MCPHTTPRequest
    /// Indicates whether the client reads a stream.
    let acceptsEvents: Bool
    private let keepAliveTimer: KeepAliveTimer

    init(_ httpRequest: MCPHTTPRequest, _ keepAliveTimer: KeepAliveTimer) {
        self.httpRequest = httpRequest
        acceptsEvents = httpRequest.headers.acceptsEvents
        self.keepAliveTimer = keepAliveTimer
    }

    /// Ends the request. The first outcome is final.
    func end(with new: Outcome) {
        outcome.withLock { if $0 == nil { $0 = new } }
        events.finish()
    }

    /// Sends a message to the client.
    ///
    /// - Returns: False if the client reads no stream, the request has ended, or too many messages wait for the client.
    @discardableResult
    func send(_ message: RPCMessage) -> Bool { acceptsEvents && events.send(message) }

    /// Returns a closure that forwards the notifications that the client asked for: progress with this token, and log
    /// messages from this level on. Returns nil if the client asked for neither.
    func notifier(progressToken: RPCID?, level: LogLevel?) -> (@Sendable (RPCNotification) -> Void)? {
        guard progressToken != nil || level != nil else { return nil }
        return { [self] notification in
            switch notification.method {
            case "notifications/progress":
                guard let progressToken else { return }
                var params = notification.params ?? [:]
                params["progressToken"] = progressToken.json
                send(.notification(RPCNotification(method: notification.method, params: params)))
            case "notifications/message":
                let messageLevel = notification.params?["level"]?.string.flatMap(LogLevel.init) ?? .info
                if let level, messageLevel >= level { send(.notification(notification)) }
            default:
                break
            }
        }
    }

    /// Runs the request and writes its response.
    ///
    /// - Parameters:
    ///   - writer: Writes the response.
    ///   - opening: The first event of a stream. With an opening, the stream starts after 100 ms, so that the client
    ///     can resume the call if the broker is killed. The clients of the Python SDK give up otherwise.
    ///   - work: Returns the response. Cancelled when the request ends early.
    /// - Throws: If the client has disconnected.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        to writer: inout Writer,
        opening: [UInt8]? = nil,
        _ work: @escaping @Sendable () async -> (JSON, status: Int)
    ) async throws {
        var isStream = false
        httpRequest.onDisconnect? { [self] in end(with: .disconnected) }
        // Clients time out after 30 s or more without a response head.
        let registration =
            acceptsEvents
            ? keepAliveTimer.register(isSoon: opening != nil) { [events] in events.keepAlive() } : nil
        defer { if let registration { keepAliveTimer.unregister(registration) } }
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask {
                let (json, status) = await work()
                self.end(with: .completed(json, status: status))
            }
            while let events = await events.next() {
                if !isStream {
                    try await writer.begin(MCPHTTPResponse.events)
                    if let opening { try await writer.send(opening) }
                }
                isStream = true
                for event in events {
                    switch event {
                    case .message(let message): try await writer.send(SSEEncoder.message(message.json))
                    case .keepAlive: try await writer.send(SSEEncoder.comment)
                    }
                }
            }
            group.cancelAll()
        }
        try await finish(isStream: isStream, to: &writer)
    }

    private func finish<Writer: MCPResponseBodyWriter & ~Copyable>(
        isStream: Bool,
        to writer: inout Writer
    ) async throws {
        switch (outcome.withLock { $0 }, isStream) {
        case (.completed(let json, let status), false):
            try await writer.write(MCPHTTPResponse(status, json: json).acceptable(to: httpRequest.headers))
        case (.completed(let json, _), true):
            try await writer.send(SSEEncoder.message(json))
            try await writer.end()
        case (.cancelled, false), (nil, false):
            // MCP wants no response to a cancelled request, but HTTP does.
            try await writer.write(.accepted)
        case (.cancelled, true), (nil, true):
            try await writer.end()
        case (.disconnected, _):
            throw CancellationError()
        }
    }
}
