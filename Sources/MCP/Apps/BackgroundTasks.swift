import AccessControl
import Model
import Registry
import Synchronization
import SystemIO

/// Background work: following changes and running background tasks.
extension AppProxy {
    /// The limit of concurrent background requests to apps.
    private static let maxConcurrentTasks = 16

    /// Follows the registry and records launches and removals of endpoints.
    func followRegistry() async {
        // The registry drops a slow subscriber; the loop then subscribes again and wakes all waiting calls.
        while !Task.isCancelled {
            let (start, changes) = await registry.changes()
            if case .snapshot(let endpoints, _) = start {
                for endpoint in endpoints { observe(endpoint, isStart: true) }
            }
            stateNotifier.notifyAll(())
            for await change in changes {
                if change.kind == .removed {
                    await remove(change.endpoint.id)
                } else {
                    observe(change.endpoint, isStart: false)
                }
                if change.kind != .changed { changeNotifier.notify(change.endpoint.id, .tools) }
                stateNotifier.notify(change.endpoint.id, ())
            }
        }
    }

    /// Follows changes of approvals and tokens and wakes the calls that wait for them.
    func followAuthorization() async {
        for await id in await authorizer.changes() {
            // The next call shows whether a new token is valid.
            recordTokenNeed(of: id, of: nil)
            stateNotifier.notify(id, ())
            refreshIfDue(id)
        }
    }

    /// Records an endpoint's current launch. A new launch after the start sets `arrivedAt`.
    private func observe(_ endpoint: Endpoint, isStart: Bool) {
        guard Self.speaksMCP(endpoint.kind) else { return }
        let launch = endpoint.state == .offline ? nil : endpoint.launch
        entries.withLock { entries in
            var entry =
                entries[endpoint.id] ?? Entry(session: makeSession(to: endpoint.id), approvedApp: endpoint.approvedApp)
            let isNew = launch != nil && entry.launch != launch
            entry.approvedApp = endpoint.approvedApp
            entry.launch = launch
            if isNew, !isStart { entry.arrivedAt = watch.elapsed }
            if isNew { (entry.isListDue, entry.launchRequiringToken) = (true, nil) }
            entries[endpoint.id] = entry
        }
        if endpoint.state != .offline { refreshIfDue(endpoint.id) }
    }

    private func remove(_ id: EndpointID) async {
        let session = entries.withLock { $0.removeValue(forKey: id)?.session }
        await session?.invalidate()
        for session in clientSessions.withLock({ $0.removeAll(of: id) }) { closeSession(session, of: id) }
        await cache.remove(id)
    }

    /// Runs the queued background tasks concurrently.
    func runBackgroundTasks() async {
        let semaphore = AsyncSemaphore(permits: Self.maxConcurrentTasks)
        await withDiscardingTaskGroup { group in
            for await task in backgroundTasks {
                group.addTask { [self] in
                    switch task {
                    // These tasks mostly wait and therefore take no permit.
                    case .closeIdle(let session): await closeIdle(session)
                    case .readSessionStream(let session, let server, let routes, let opened, let end):
                        await session.readStream(of: server, by: routes, opened: opened, until: end)
                    case .expireSessions: await expireSessions()
                    case .run(let run): await run()
                    case .forwardClientRequest(let request, let session, let routes):
                        await forward(request, over: session, by: routes)
                    case .subscribe(let id, let caller): await followChanges(of: id, for: caller)
                    case .refresh(let id, let change, let pause): await perform(change, of: id, after: pause, semaphore)
                    case .notify(let session, let message, let routes):
                        guard let permit = try? await semaphore.acquire() else { return }
                        // Errors are ignored: if the app is unreachable, the notification is irrelevant.
                        try? await session.notify(message, by: routes)
                        permit.release()
                    case .refreshTools(let id, let caller):
                        guard let permit = try? await semaphore.acquire() else { return }
                        _ = try? await freshList(CachedApp.tools, of: id, for: caller, wait: .zero)
                        permit.release()
                    }
                }
            }
        }
    }

    private func forward(
        _ request: ClientRequestForwarder.PendingRequest,
        over session: UpstreamSession,
        by routes: [AuthorizedRoute]
    ) async {
        let outcome = await request.forward(within: limits.clientAnswer, clock: clock)
        if let outcome { try? await session.notify(.response(id: request.id, outcome), by: routes) }
        request.forwarder.finish(request.id)
    }

    private func closeIdle(_ session: UpstreamSession) async {
        repeat {
            guard (try? await clock.sleep(for: PooledConnection.lifetime)) != nil else { return }
        } while await session.closeIdle()
    }
}

extension AgentCaller {
    /// Patchbay itself, which follows changes on behalf of subscribers.
    static let broker = AgentCaller(.broker, permissions: nil)
}

/// Follows the changes that apps announce while there are subscribers.
extension AppProxy {
    /// The pause before a change stream is opened again after an unexplained end, in seconds.
    private static let resubscribePause = Duration.seconds(5)

    /// Follows an app's change stream until the app has no subscribers of its own. One task per app.
    func followChanges(of id: EndpointID, for caller: AgentCaller) async {
        guard let endpoint = try? await endpoint(id) else { return }
        _ = session(to: endpoint)
        let isFirst = entries.withLock { entries in
            guard entries[id]?.isFollowed == false else { return false }
            entries[id]?.isFollowed = true
            return true
        }
        guard isFirst else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.changeNotifier.waitUntilUnsubscribed(id) }
            group.addTask { await self.streamChangesRepeatedly(of: id, for: caller) }
            await group.next()
            group.cancelAll()
        }
        entries.withLock { $0[id]?.isFollowed = false }
        // A new subscriber may have arrived after the last one left.
        if changeNotifier.hasSubscribers(only: id), !Task.isCancelled { schedule(.subscribe(id, for: caller)) }
    }

    private func streamChangesRepeatedly(of id: EndpointID, for caller: AgentCaller) async {
        while !Task.isCancelled {
            // Created for each round, because a cancelled iteration ends its stream.
            let wakeups = stateNotifier.stream(of: id, bufferSize: 1) { _, _ in () }
            let hasStream = try? await streamChangesOnce(of: id, for: caller)
            let pause: Duration? = hasStream == true ? Self.resubscribePause : nil
            // An app without a change stream, or an offline app, is tried again after its next state change.
            guard let pause else {
                for await _ in wakeups { break }
                continue
            }
            _ = try? await withTimeout(pause, clock: clock) {
                for await _ in wakeups { break }
                return true
            }
        }
    }

    private func streamChangesOnce(of id: EndpointID, for caller: AgentCaller) async throws -> Bool {
        let endpoint = try await endpoint(id)
        let (session, access) = try await authorize(caller, to: endpoint)
        return try await session.streamChanges(of: endpoint, by: access.routes)
    }
}

/// Work with an app that no client waits for.
enum BackgroundTask: Sendable {
    /// Sends the app a message that has no response.
    case notify(UpstreamSession, RPCMessage, [AuthorizedRoute])
    /// Forwards the app's request to the client of the request in progress.
    case forwardClientRequest(ClientRequestForwarder.PendingRequest, UpstreamSession, [AuthorizedRoute])
    /// Reads the session's GET stream, on which the app sends its own requests.
    case readSessionStream(UpstreamSession, ServerInfo, [AuthorizedRoute], opened: Promise<Void>, until: Promise<Void>)
    /// Closes client sessions that have been idle for long.
    case expireSessions
    /// Runs a closure: a suspended call that continues, or the end of a session.
    case run(@Sendable () async -> Void)
    /// Closes idle connections to the app.
    case closeIdle(UpstreamSession)
    /// Lists the app's tools for a subscriber.
    case refreshTools(EndpointID, for: AgentCaller)
    /// Refreshes a list after an announced change or a new launch.
    case refresh(EndpointID, ServerChange, after: Duration)
    /// Follows the app's changes while there are subscribers.
    case subscribe(EndpointID, for: AgentCaller)
}
