import JSON
import ServiceLifecycle

/// The streams that tell of changes: one kind in 2026-07-28, another one before.
extension StreamableHTTPTransport {
    func listen<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ subscription: SubscriptionRequest,
        for call: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        // Subscribed before it is said, so that nothing is missed in between.
        let changes = server.changes(for: caller)
        for uri in subscription.addresses.sorted() {
            // An app is asked to tell; that it cannot is known when nothing comes.
            _ = try? await server.answer(MCPRequest("resources/subscribe", ["uri": .string(uri)]), of: caller)
        }
        try await ChangeStream(heartbeat).run(
            for: call,
            to: &writer,
            changes: changes,
            first: SSEEncoder.message(subscription.acknowledgement),
            last: SSEEncoder.message(subscription.end)
        ) { subscription.message($0) }
    }

    func follow<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ session: SessionStore.Session?,
        isResumed: Bool,
        for call: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        let changes = server.changes(for: caller)
        let description = await server.description(for: caller)
        let listening = ChangeStream(heartbeat)
        var number: Int?
        if let session { number = await sessions.open(session) { listening.stop() } }
        var first = SSEEncoder.retry
        if isResumed {
            // What happened while the broker was away, nobody knows; so the client looks at everything again.
            for change in [ServerChange.tools, .prompts, .resources] where description.tells(of: change) {
                first += SSEEncoder.message(change.notification)
            }
        }
        let addresses: [String] =
            if isResumed, let session { await sessions.subscriptions(of: session).sorted() } else { [] }
        for uri in addresses { first += SSEEncoder.message(ServerChange.resource(uri).notification) }
        // An app has been told by an earlier run, if at all. It may be away, which holds nothing up here.
        async let _: Void = tell(addresses, of: caller)
        let end: Result<Void, any Error>
        do {
            try await listening.run(for: call, to: &writer, changes: changes, first: first, last: nil) {
                [sessions] change in
                if case .resource(let uri) = change {
                    guard let session, await sessions.isSubscribed(uri, session) else { return nil }
                    return change.notification
                }
                return description.tells(of: change) ? change.notification : nil
            }
            end = .success(())
        } catch { end = .failure(error) }
        if let session, let number { await sessions.close(number, of: session) }
        try end.get()
    }

    /// An app is asked to tell when these change; that it cannot is known when nothing comes.
    private func tell(_ addresses: [String], of caller: AgentCaller) async {
        for uri in addresses where !Task.isCancelled {
            _ = try? await server.answer(MCPRequest("resources/subscribe", ["uri": .string(uri)]), of: caller)
        }
    }
}

extension ServerDescription {
    fileprivate func tells(of change: ServerChange) -> Bool {
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

/// A stream of a server's changes, until the reader goes, somebody ends it, or the broker stops.
struct ChangeStream: Sendable {
    enum Event: Sendable {
        case change(ServerChange)
        case quiet
        /// The reader is to be told that this was all.
        case end
    }

    /// Changes that wait for a slow reader; then the stream ends, and the reader comes back and looks anew.
    private static let backlog = 256

    private let events: AsyncStream<Event>
    private let told: AsyncStream<Event>.Continuation
    private let heartbeat: KeepAliveTimer

    init(_ heartbeat: KeepAliveTimer) {
        (events, told) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(Self.backlog))
        self.heartbeat = heartbeat
    }

    /// Ends it without a word, for a stream that takes its place.
    func stop() { told.finish() }

    /// Follows the changes until the end. `first` is sent before everything else, `last` when it is the broker that ends the
    /// stream; `message` says what a change is to this reader, nil where it is nothing to it.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        for call: MCPHTTPRequest,
        to writer: inout Writer,
        changes: AsyncStream<ServerChange>,
        first: [UInt8],
        last: [UInt8]?,
        message: @Sendable (ServerChange) async -> JSON?
    ) async throws {
        try await writer.begin(MCPHTTPResponse.events)
        try await writer.send(first)
        call.onDeparture? { [told] in told.finish() }
        let beats = heartbeat.join { [told] in told.yield(.quiet) }
        defer { heartbeat.leave(beats) }
        try await withThrowingDiscardingTaskGroup { [told] group in
            group.addTask {
                await withGracefulShutdownHandler {
                    for await change in changes {
                        if case .dropped = told.yield(.change(change)) { break }
                    }
                    told.finish()
                } onGracefulShutdown: {
                    told.yield(.end)
                    told.finish()
                }
            }
            for await event in events {
                switch event {
                case .change(let change):
                    if let json = await message(change) { try await writer.send(SSEEncoder.message(json)) }
                case .quiet: try await writer.send(SSEEncoder.comment)
                case .end: if let last { try await writer.send(last) }
                }
            }
            group.cancelAll()
        }
        try await writer.end()
    }
}
