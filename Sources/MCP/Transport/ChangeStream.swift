import JSON
import ServiceLifecycle

/// Streams of changes: `subscriptions/listen` in 2026-07-28, and GET streams in the session protocols.
extension StreamableHTTPTransport {
    /// Serves `subscriptions/listen` (MCP 2026-07-28).
    func streamSubscription<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ subscription: SubscriptionRequest,
        for httpRequest: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        // Subscribed before the acknowledgement is sent, so that no change is missed in between.
        let changes = server.changes(for: caller)
        for uri in subscription.resourceURIs.sorted() {
            // The app is asked to send updates. A failure is ignored: the client then gets no updates.
            _ = try? await server.answer(MCPRequest("resources/subscribe", ["uri": .string(uri)]), of: caller)
        }
        try await ChangeStream(keepAliveTimer).run(
            for: httpRequest,
            to: &writer,
            changes: changes,
            first: SSEEncoder.message(subscription.acknowledgement),
            last: SSEEncoder.message(subscription.end)
        ) { subscription.message(for: $0) }
    }

    /// Serves the GET stream of a session protocol.
    ///
    /// A resumed stream starts with notifications about everything that may have changed while the broker was down.
    func streamSession<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ session: SessionStore.Session?,
        isResumed: Bool,
        for httpRequest: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        let changes = server.changes(for: caller)
        let description = await server.description(for: caller)
        let changeStream = ChangeStream(keepAliveTimer)
        var number: Int?
        if let session { number = await sessions.openStream(of: session) { changeStream.stop() } }
        var first = SSEEncoder.retry
        if isResumed {
            // The changes during the downtime of the broker are unknown. The client is told to read everything again.
            for change in [ServerChange.tools, .prompts, .resources] where description.announces(of: change) {
                first += SSEEncoder.message(change.notification)
            }
        }
        let uris: [String] =
            if isResumed, let session { await sessions.subscriptions(of: session).sorted() } else { [] }
        for uri in uris { first += SSEEncoder.message(ServerChange.resource(uri).notification) }
        // A restored subscription may be unknown to the app. An unreachable app does not delay the stream.
        async let _: Void = subscribe(uris, of: caller)
        let end: Result<Void, any Error>
        do {
            try await changeStream.run(for: httpRequest, to: &writer, changes: changes, first: first, last: nil) {
                [sessions] change in
                if case .resource(let uri) = change {
                    guard let session, await sessions.isSubscribed(uri, in: session) else { return nil }
                    return change.notification
                }
                return description.announces(of: change) ? change.notification : nil
            }
            end = .success(())
        } catch { end = .failure(error) }
        if let session, let number { await sessions.closeStream(number, of: session) }
        try end.get()
    }

    /// Asks the app for updates of these resources. Failures are ignored: the client then gets no updates.
    private func subscribe(_ uris: [String], of caller: AgentCaller) async {
        for uri in uris where !Task.isCancelled {
            _ = try? await server.answer(MCPRequest("resources/subscribe", ["uri": .string(uri)]), of: caller)
        }
    }
}

extension ServerDescription {
    fileprivate func announces(of change: ServerChange) -> Bool {
        switch change {
        case .tools: has("tools", "listChanged")
        case .prompts: has("prompts", "listChanged")
        case .resources: has("resources", "listChanged")
        case .resource: has("resources", "subscribe")
        }
    }
}

extension ServerChange {
    fileprivate var notification: JSON {
        var params: JSONObject?
        if case .resource(let uri) = self { params = ["uri": .string(uri)] }
        return RPCMessage.notification(RPCNotification(method: method, params: params)).json
    }
}

/// A stream of a server's changes. It ends when the reader disconnects, the stream is replaced, or the broker stops.
struct ChangeStream: Sendable {
    /// An event of the stream.
    enum Event: Sendable {
        case change(ServerChange)
        case keepAlive
        /// The broker stops; the reader gets the final message.
        case end
    }

    /// The maximum number of changes that wait for a slow reader. At the limit the stream ends; the reader reconnects
    /// and reads the lists again.
    private static let backlog = 256

    private let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let keepAliveTimer: KeepAliveTimer

    init(_ keepAliveTimer: KeepAliveTimer) {
        (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(Self.backlog))
        self.keepAliveTimer = keepAliveTimer
    }

    /// Ends the stream without a final message, because another stream replaces it.
    func stop() { continuation.finish() }

    /// Streams the changes until the end.
    ///
    /// - Parameters:
    ///   - httpRequest: The HTTP request of the stream.
    ///   - writer: Writes the response.
    ///   - changes: The changes of the server.
    ///   - first: Sent before everything else.
    ///   - last: Sent if the broker ends the stream.
    ///   - message: Returns the message for a change; nil if the reader did not subscribe to that change.
    /// - Throws: If the reader has disconnected.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        for httpRequest: MCPHTTPRequest,
        to writer: inout Writer,
        changes: AsyncStream<ServerChange>,
        first: [UInt8],
        last: [UInt8]?,
        message: @Sendable (ServerChange) async -> JSON?
    ) async throws {
        try await writer.begin(MCPHTTPResponse.events)
        try await writer.send(first)
        httpRequest.onDisconnect? { [continuation] in continuation.finish() }
        let registration = keepAliveTimer.register { [continuation] in continuation.yield(.keepAlive) }
        defer { keepAliveTimer.unregister(registration) }
        try await withThrowingDiscardingTaskGroup { [continuation] group in
            group.addTask {
                await withGracefulShutdownHandler {
                    for await change in changes {
                        if case .dropped = continuation.yield(.change(change)) { break }
                    }
                    continuation.finish()
                } onGracefulShutdown: {
                    continuation.yield(.end)
                    continuation.finish()
                }
            }
            for await event in events {
                switch event {
                case .change(let change):
                    if let json = await message(change) { try await writer.send(SSEEncoder.message(json)) }
                case .keepAlive: try await writer.send(SSEEncoder.comment)
                case .end: if let last { try await writer.send(last) }
                }
            }
            group.cancelAll()
        }
        try await writer.end()
    }
}
