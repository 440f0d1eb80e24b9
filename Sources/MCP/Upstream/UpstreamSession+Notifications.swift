import AccessControl
import JSON
import Model
import SystemIO

/// Receives change notifications from the app.
extension UpstreamSession {
    /// The limit of subscribed resources per app.
    private static let subscriptionLimit = 256

    /// Handles `resources/subscribe` and `resources/unsubscribe` locally for a stateless app. In stateless mode the
    /// URIs are parameters of the change stream.
    func handleSubscription(_ request: MCPRequest, _ server: ServerInfo) -> AppReply? {
        guard server.protocolVersion.isStateless, let uri = request.params["uri"]?.string else { return nil }
        switch request.method {
        case "resources/subscribe" where subscribedURIs.count < Self.subscriptionLimit:
            if subscribedURIs.insert(uri).inserted { resubscribe?.complete(.success(())) }
        case "resources/unsubscribe": subscribedURIs.remove(uri)
        default: return nil
        }
        return AppReply(outcome: .success([:]), size: 0)
    }

    /// Records successful subscriptions and the log level, to restore them after the app's next launch.
    func recordSubscription(_ request: MCPRequest, _ reply: AppReply) {
        guard case .success = reply.outcome else { return }
        if request.method == "logging/setLevel", clientParameters != nil { logLevel = request.params["level"] }
        guard let uri = request.params["uri"]?.string else { return }
        switch request.method {
        case "resources/subscribe" where subscribedURIs.count < Self.subscriptionLimit: subscribedURIs.insert(uri)
        case "resources/unsubscribe": subscribedURIs.remove(uri)
        default: break
        }
    }

    /// Follows the app's changes until its stream ends. Messages are passed to the message handler.
    ///
    /// - Returns: False if this app announces no changes.
    /// - Throws: `UpstreamError`, `CancellationError`.
    func streamChanges(of endpoint: Endpoint, by routes: [AuthorizedRoute]) async throws -> Bool {
        while true {
            let server = try await connect(endpoint, by: routes)
            guard server.announcesChanges else { return false }
            let resubscribe = Promise<Void>()
            self.resubscribe = resubscribe
            let status = try await withThrowingTaskGroup(of: Int?.self) { group in
                group.addTask {
                    try await resubscribe.value()
                    return nil
                }
                group.addTask {
                    server.protocolVersion.isStateless
                        ? try await self.streamStatelessChanges(server, routes)
                        : try await self.streamSessionChanges(server, routes)
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
            // Nil after a new subscription or an idle timeout; the stream is opened again.
            guard let status else { continue }
            // MCP 2025-03-26 and later: a server without such a stream answers 405.
            if status == 405 { return false }
            if status == 404 { connected = nil }
            return true
        }
    }

    /// Reads the GET stream of a session-mode server.
    ///
    /// - Returns: The status; nil after an idle timeout.
    private func streamSessionChanges(_ server: ServerInfo, _ routes: [AuthorizedRoute]) async throws -> Int? {
        for uri in subscribedURIs.sorted() {
            // A new session has no subscriptions. For an old session the request is redundant.
            lastID += 1
            let request = RPCRequest(
                id: .number(JSONNumber(lastID)),
                method: "resources/subscribe",
                params: ["uri": .string(uri)]
            )
            _ = try await exchange(
                RPCMessage.request(request).json,
                at: server.transport,
                headers: server.headers(for: request.method, [:]),
                by: routes,
                awaiting: request.id,
                limits: .handshake
            )
        }
        do {
            return try await exchange(
                nil,
                at: server.transport,
                headers: server.headers(for: "", [:]),
                by: routes,
                awaiting: nil,
                limits: streamLimits
            ).status
        } catch UpstreamError.timedOut { return nil }
    }

    /// Reads the `subscriptions/listen` stream of a stateless server.
    ///
    /// - Returns: The status, 405 without such a stream; nil after an idle timeout.
    private func streamStatelessChanges(_ server: ServerInfo, _ routes: [AuthorizedRoute]) async throws -> Int? {
        lastID += 1
        var filter: JSONObject = ["toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true]
        if !subscribedURIs.isEmpty {
            filter["resourceSubscriptions"] = .array(subscribedURIs.sorted().map { .string($0) })
        }
        var params: JSONObject = ["notifications": .object(filter)]
        params["_meta"] = server.meta(nil, capabilities: [:]).map { .object($0) }
        let number = JSONNumber(lastID)
        let request = RPCRequest(id: .number(number), method: "subscriptions/listen", params: params)
        let response: UpstreamResponse
        do {
            response = try await exchange(
                RPCMessage.request(request).json,
                at: server.transport,
                headers: server.headers(for: request.method, params),
                by: routes,
                awaiting: request.id,
                limits: server.transport == .lines ? .lineChangeStream : streamLimits
            )
        } catch {
            if server.transport == .lines { cancel(number, routes) }
            guard let failure = error as? UpstreamError, failure.isTimeout else { throw error }
            return nil
        }
        // An error means that the server has no such stream, regardless of the status.
        guard case .failure? = response.outcome else { return response.status }
        return 405
    }
}

extension ServerInfo {
    /// Indicates whether the server announces changes.
    var announcesChanges: Bool {
        let switches = [("tools", "listChanged"), ("prompts", "listChanged"), ("resources", "listChanged")]
        return (switches + [("resources", "subscribe")]).contains { capabilities[$0.0]?[$0.1] == true }
    }
}

/// Client sessions: the app may send requests on the stream of a response or on the session's GET stream.
extension UpstreamSession {
    /// The time in seconds that a request waits for the GET stream. A server that takes longer is assumed to have none.
    private static let openingLimit = Duration.seconds(1)
    /// The pause after the GET stream ended during a request, in milliseconds.
    private static let pause = Duration.milliseconds(500)

    /// Opens the GET stream of a client session before a request. Without the stream, a request of the app
    /// (`roots/list` of the Python SDK) would be lost and the client's request would hang.
    func ensureSessionStream(_ server: ServerInfo, by routes: [AuthorizedRoute]) async {
        guard clientParameters != nil, let session = server.sessionID, streamTask?.session != session else { return }
        streamTask?.end.complete(.success(()))
        let (opened, end) = (Promise<Void>(), Promise<Void>())
        streamTask = (session, end)
        schedule(.readSessionStream(self, server, routes, opened: opened, until: end))
        _ = try? await withTimeout(Self.openingLimit, clock: clock) { try await opened.value() }
    }

    /// Reads the GET stream until it ends or is replaced.
    func readStream(
        of server: ServerInfo,
        by routes: [AuthorizedRoute],
        opened: Promise<Void>,
        until end: Promise<Void>
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await end.value() }
            group.addTask { await self.read(server, by: routes, opened: opened) }
            await group.next()
            group.cancelAll()
        }
        opened.complete(.success(()))
        if streamTask?.end === end { streamTask = nil }
    }

    private func read(_ server: ServerInfo, by routes: [AuthorizedRoute], opened: Promise<Void>) async {
        repeat {
            let response = try? await exchange(
                nil,
                at: server.transport,
                headers: server.headers(for: "", [:]),
                by: routes,
                awaiting: nil,
                limits: streamLimits,
                mayReuse: false,
                opened: { opened.complete(.success(())) }
            )
            // MCP 2025-03-26 and later: a server without such a stream answers 405.
            guard let response, response.status != 405, !forwarders.isEmpty, connected?.server == server else { return }
            try? await clock.sleep(for: Self.pause)
        } while !Task.isCancelled
    }

    /// Ends the session and informs the app with a DELETE.
    func close(by routes: [AuthorizedRoute]) async {
        streamTask?.end.complete(.success(()))
        guard let server = connected?.server, server.sessionID != nil else { return }
        invalidate()
        _ = try? await exchange(
            nil,
            at: server.transport,
            headers: server.headers(for: "", [:]),
            by: routes,
            awaiting: nil,
            limits: .handshake,
            mayReuse: false,
            isSessionDelete: true
        )
    }

    /// Returns whether the server may have client sessions.
    func mayHaveSessions(_ server: ServerInfo, speaking isStateless: Bool) -> Bool {
        if server.protocolVersion.isStateless {
            return isStateless && (launchWithoutSessions == nil || launchWithoutSessions != connected?.launch)
        }
        return server.sessionID != nil
    }

    /// Records that this launch of the app has no sessions.
    func recordNoSessions() { launchWithoutSessions = connected?.launch }
}
