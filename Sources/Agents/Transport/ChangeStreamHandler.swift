import AccessControl
import Apps
import Model
import SystemIO

/// Serves streams of changes: `subscriptions/listen` in 2026-07-28, and GET streams in the session protocols.
struct ChangeStreamHandler: Sendable {
    let handler: any MCPRequestHandler
    let sessions: SessionStore
    let keepAliveTimer: KeepAliveTimer
    let clock: any Clock<Duration>

    /// The longest time for which the acknowledgement of a subscription waits for the app. An app that is offline is
    /// waited for much longer.
    static let acknowledgementDelay = Duration.milliseconds(500)
    /// The number of resources to which an app is asked to subscribe at the same time.
    private static let concurrentSubscriptions = 4

    /// Serves `subscriptions/listen` (MCP 2026-07-28).
    func streamSubscription<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ parsed: ParsedRequest,
        for httpRequest: MCPHTTPRequest,
        of principal: Principal,
        to writer: inout Writer
    ) async throws {
        let subscription: SubscriptionRequest
        do throws(RPCError) {
            let description = await handler.description(for: principal)
            subscription = try SubscriptionRequest(parsed.request.params, id: parsed.id, description)
        } catch {
            return try await writer.write(MCPHTTPResponse(parsed.mode.status(of: error), error, to: parsed.id))
        }
        // Subscribed before the acknowledgement is sent, so that no change is missed in between.
        let changes = handler.changes(for: principal)
        let changeStream = ChangeStream(keepAliveTimer)
        let (isAcknowledged, subscribed) = (SharedFlag(), Promise<Void>())
        async let _: Void = subscribe(subscription.resourceURIs, of: principal, completing: subscribed) { uri in
            // The resource may have changed between the acknowledgement and the subscription.
            if isAcknowledged.isSet { changeStream.send(.resource(uri)) }
        }
        _ = try await withTimeout(Self.acknowledgementDelay, clock: clock) { try await subscribed.value() }
        isAcknowledged.set()
        try await changeStream.run(
            for: httpRequest,
            to: &writer,
            changes: changes,
            first: SSEEncoder.message(subscription.acknowledgement),
            last: SSEEncoder.message(subscription.end)
        ) { subscription.message(for: $0) }
    }

    /// Serves the GET stream of a session protocol.
    ///
    /// The first stream of a session from an earlier run starts with notifications about the lists that have changed
    /// since then. Notifications about the subscribed resources follow, because their changes are unknown. A
    /// notification without a change would be harmful: semantic-kernel lists the tools inside its handler of
    /// messages, and then waits for itself.
    func streamSession<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ session: SessionStore.Session?,
        for httpRequest: MCPHTTPRequest,
        of principal: Principal,
        to writer: inout Writer
    ) async throws {
        let isResumed = if let session { await sessions.markCurrent(session) } else { false }
        let changes = handler.changes(for: principal)
        let description = await handler.description(for: principal)
        let changeStream = ChangeStream(keepAliveTimer)
        var number: Int?
        if let session { number = await sessions.openStream(of: session) { changeStream.stop() } }
        var first = SSEEncoder.retry
        if isResumed {
            let changed = await handler.changedLists(for: principal)
            for change in [ServerChange.tools, .prompts, .resources]
            where changed.contains(change) && description.announces(of: change) {
                first += SSEEncoder.message(change.notification)
            }
        }
        let uris = if isResumed, let session { await sessions.subscriptions(of: session) } else { Set<String>() }
        for uri in uris.sorted() { first += SSEEncoder.message(ServerChange.resource(uri).notification) }
        // A restored subscription may be unknown to the app. An unreachable app does not delay the stream.
        async let _: Void = subscribe(uris, of: principal)
        async let _: Void = refreshLists(if: isResumed, description, of: principal)
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

    /// Reads the lists that a client of an earlier run may know. The handler compares them with the lists of that run,
    /// and publishes a difference as a change. A handler reads its tools again for every stream.
    private func refreshLists(if isResumed: Bool, _ description: HandlerDescription, of principal: Principal) async {
        guard isResumed else { return }
        for (change, method) in [(ServerChange.prompts, "prompts/list"), (.resources, "resources/list")]
        where description.announces(of: change) {
            _ = try? await handler.answer(MCPRequest(method), of: principal)
        }
    }

    /// Asks the app for updates of these resources. Failures are ignored: the client then gets no updates.
    ///
    /// - Parameters:
    ///   - uris: The resources.
    ///   - principal: The subscriber.
    ///   - completion: Completed when the app has been asked for all of them.
    ///   - onSubscription: Called for each resource to which the app has subscribed the client.
    private func subscribe(
        _ uris: Set<String>,
        of principal: Principal,
        completing completion: Promise<Void>? = nil,
        onSubscription: @escaping @Sendable (String) -> Void = { _ in }
    ) async {
        await withTaskGroup(of: Void.self) { group in
            for (index, uri) in uris.sorted().enumerated() where !Task.isCancelled {
                if index >= Self.concurrentSubscriptions { await group.next() }
                group.addTask {
                    let request = MCPRequest("resources/subscribe", ["uri": .string(uri)])
                    if (try? await handler.answer(request, of: principal)) != nil { onSubscription(uri) }
                }
            }
        }
        completion?.complete(.success(()))
    }
}

extension HandlerDescription {
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
