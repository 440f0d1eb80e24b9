import AccessControl
import Model
import SystemIO

/// An MCP session with one app: the connected server, the request queue, and what outlives the app's launches.
///
/// Makes one attempt per request and reports the error. `RetryPolicy` decides about retries. Only a lost session is
/// handled here: after a new handshake the request is sent a second time, if that is safe.
actor UpstreamSession {
    /// Limits of concurrent requests, in total and per holder, and of waiting requests per holder. The limits are low
    /// because AppReveal answers on the app's main thread.
    static let maxConcurrentRequests = 8
    static let perHolderLimit = 4
    static let queueLimit = 64

    private let id: EndpointID
    private let timeouts: UpstreamTimeouts
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let tasks: BackgroundTasks
    /// Receives announced changes.
    private let onChange: @Sendable (ServerChange) -> Void

    let connector: UpstreamConnector
    nonisolated let subscriptions = ResourceSubscriptions()
    /// One image of the app at a time is resized, so that an app with many images does not delay the others.
    nonisolated let imageTurns = AsyncSemaphore(permits: 1)
    /// The requests of the app to the client of a client session; nil for the shared session.
    private let appRequests: AppRequests?
    /// The stream on which the app sends requests to the client of a client session.
    private let clientSessionStream: ClientSessionStream
    private var requestQueue = FairQueue<Promise<Void>>(
        permits: UpstreamSession.maxConcurrentRequests,
        perHolderLimit: UpstreamSession.perHolderLimit,
        queueLimit: UpstreamSession.queueLimit
    )
    private var lastID = ServerInfo.lastHandshakeID
    /// The client's minimum log level, if set.
    private var logLevel: JSON?

    init(
        over connector: UpstreamConnector,
        timeouts: UpstreamTimeouts,
        tasks: BackgroundTasks,
        onChange: @escaping @Sendable (ServerChange) -> Void
    ) {
        let pool = connector.pool
        (id, clock, watch) = (pool.id, pool.clock, pool.watch)
        (self.connector, self.timeouts, self.tasks, self.onChange) = (connector, timeouts, tasks, onChange)
        appRequests =
            connector.clientParameters == nil
            ? nil : AppRequests(tasks: tasks, clock: clock, watch: watch, timeout: timeouts.clientAnswer)
        clientSessionStream = ClientSessionStream(clock: clock, tasks: tasks)
    }

    // MARK: The connection

    /// The server of the last handshake, if it is still valid.
    nonisolated var server: ServerInfo? { connector.connected?.server }

    /// Returns the app's server. Performs the handshake once per launch.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func connect(_ endpoint: Endpoint, by routes: [AuthorizedRoute]) async throws -> UpstreamConnector.Connected {
        let handler = handler(during: nil, by: routes)
        return try await connector.connect(endpoint, by: routes, logLevel: logLevel, handler: handler)
    }

    /// The same, with the caller's time limit.
    func connect(
        _ endpoint: Endpoint,
        by routes: [AuthorizedRoute],
        within left: Duration
    ) async throws -> UpstreamConnector.Connected {
        if let launch = endpoint.launch(over: routes), let connected = await connector.verified(launch, by: routes) {
            return connected
        }
        let connected = try await withTimeout(left, clock: clock) { try await self.connect(endpoint, by: routes) }
        guard let connected else { throw AppError.noHandshake(seconds: left.roundedSeconds) }
        return connected
    }

    /// Returns the handshake parameters of a client's own session, by those of this session's server.
    ///
    /// - Returns: Nil for an app without sessions.
    /// - Throws: `AppError`, `CancellationError`.
    func parameters(
        for client: ClientRequester,
        at endpoint: Endpoint,
        by routes: [AuthorizedRoute],
        within limit: Duration
    ) async throws -> ClientSessionParameters? {
        let connected = try await connect(endpoint, by: routes, within: limit)
        // A server that supports both modes sends requests to a session-mode client, and returns them as results to a
        // stateless client.
        guard case .http(let path) = connected.server.transport,
            connector.mayHaveSessions(connected, speaking: client.isAskedOnStreams)
        else { return nil }
        return ClientSessionParameters(
            path: path,
            protocolVersion: min(client.protocolVersion, connected.server.newestVersion),
            capabilities: client.capabilities
        )
    }

    /// Ends the session and informs the app with a DELETE.
    func close(by routes: [AuthorizedRoute]) async {
        clientSessionStream.close()
        guard let connected = connector.connected, connected.server.sessionID != nil else { return }
        await connector.invalidate()
        var message = UpstreamMessage(response: nil, to: connected.server)
        message.mayReuse = false
        message.isSessionDelete = true
        _ = try? await exchange(message, over: connected, by: routes)
    }

    // MARK: Requests

    /// Sends a request over the first route that works. The annotations are those of the called tool. Requests of
    /// different holders take turns.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func send(
        _ request: MCPRequest,
        to endpoint: Endpoint,
        by admission: DeliveryAuthorization,
        annotations: ToolAnnotations
    ) async throws -> UpstreamResponse {
        let (holder, end) = (admission.holder, watch.elapsed + admission.limit)
        let isQueued = !requestQueue.acquire(holder)
        if isQueued { try await waitForTurn(holder, admission) }
        defer { releaseTurn(holder) }
        do {
            if isQueued { try admission.check() }
            return try await sendWithRehandshake(request, to: endpoint, by: admission, annotations, until: end)
        } catch let failure as AppError {
            // The next server at this address may be another launch.
            if failure.indicatesAppGone { await connector.invalidate() }
            throw failure
        }
    }

    private func waitForTurn(_ holder: String, _ admission: DeliveryAuthorization) async throws {
        guard !requestQueue.isFull(for: holder) else { throw AppError.busy }
        let turn = Promise<Void>()
        requestQueue.enqueue(turn, for: holder)
        do { try await admission.wait(for: turn, clock: clock) } catch {
            requestQueue.remove(holder) { $0 === turn }
            throw error
        }
    }

    private func releaseTurn(_ holder: String) {
        requestQueue.release(holder)
        while let (turn, next) = requestQueue.next() {
            // A turn that was cancelled meanwhile is skipped.
            if !turn.complete(.success(())) { requestQueue.release(next) }
        }
    }

    /// Sends a request. Repeats it once with a new handshake if the server has lost the session.
    private func sendWithRehandshake(
        _ request: MCPRequest,
        to endpoint: Endpoint,
        by admission: DeliveryAuthorization,
        _ annotations: ToolAnnotations,
        until end: Duration
    ) async throws -> UpstreamResponse {
        let routes = admission.routes
        var isSecond = false
        while true {
            let connected = try await connect(endpoint, by: routes, within: end - watch.elapsed)
            // In stateless mode the resources are parameters of the change stream.
            if connected.server.protocolVersion.isStateless, request.method == "resources/subscribe" {
                return UpstreamResponse(outcome: .success([:]))
            }
            if appRequests != nil { await openSessionStream(connected, by: routes, within: end - watch.elapsed) }
            let response = try await sendRequest(request, to: connected, by: admission, annotations, until: end)
            let staleness = response.staleness(of: connected.server)
            // Another server than the connected one, or a server that has lost the session.
            if staleness != nil { connector.forget(connected.server) }
            // A tool call that may change the app is repeated only if the protocol guarantees that it was not processed.
            let mayRepeat = staleness == .possiblyProcessed && annotations.mayRepeat(request)
            if !isSecond, mayRepeat || staleness == .notProcessed {
                isSecond = true
                continue
            }
            try response.validate(by: routes)
            if case .success? = response.outcome { record(request) }
            return response
        }
    }

    /// Records a successful log level, to restore it after the app's next launch.
    private func record(_ request: MCPRequest) {
        if request.method == "logging/setLevel", appRequests != nil { logLevel = request.params["level"] }
    }

    private func sendRequest(
        _ request: MCPRequest,
        to connected: UpstreamConnector.Connected,
        by admission: DeliveryAuthorization,
        _ annotations: ToolAnnotations,
        until end: Duration
    ) async throws -> UpstreamResponse {
        let (server, number) = (connected.server, newID())
        var params = request.params
        var meta =
            server.meta(params["_meta"], capabilities: request.capabilities, logLevel: request.logLevel) ?? [:]
        if request.notify != nil { meta["progressToken"] = .number(number) }
        // A transport without headers has `_meta` alone, and the other way around.
        let trace = request.trace
        let inMeta = trace.meta ?? (server.transport == .lines ? trace.header : nil)
        for (name, value) in inMeta?.headers ?? [] { meta[name] = .string(value) }
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        var message = UpstreamMessage(request.method, params, id: number, to: server)
        if server.protocolVersion.isStateless {
            message.headers += annotations.parameters.headers(for: params["arguments"])
        }
        message.trace = trace.header ?? (server.transport == .profile ? trace.meta : nil)
        message.limits = timeouts.response
        message.callerTimeout = request.timeout
        if let timeout = request.timeout { message.limits.idle = timeout }
        message.limits.total = min(message.limits.total, end - watch.elapsed)
        message.admission = admission
        message.mayReuse = annotations.mayRepeat(request)
        message.notify = request.notify
        if let client = request.clientRequester { appRequests?.begin(.number(number), of: client) }
        defer { appRequests?.end(.number(number)) }
        connector.beginRequest()
        defer { connector.endRequest() }
        do {
            let response = try await exchange(message, over: connected, by: admission.routes)
            connector.recordResponse()
            return response
        } catch {
            let mayStillRun = error is CancellationError || (error as? AppError)?.isTimeout == true
            if server.transport == .lines || !server.protocolVersion.isStateless, mayStillRun {
                cancel(number, admission.routes)
            }
            throw error
        }
    }

    /// Sends a cancellation. In session mode and over a line transport, closing the stream does not cancel a request.
    private nonisolated func cancel(_ number: JSONNumber, _ routes: [AuthorizedRoute]) {
        let params: JSONObject = [
            "requestId": .number(number), "reason": "the client no longer waits for the response",
        ]
        notifyLater(by: routes) { UpstreamMessage("notifications/cancelled", params, to: $0) }
    }

    private func newID() -> JSONNumber {
        lastID += 1
        return JSONNumber(lastID)
    }

    // MARK: The app's own messages

    private func exchange(
        _ message: UpstreamMessage,
        over connected: UpstreamConnector.Connected,
        by routes: [AuthorizedRoute]
    ) async throws -> UpstreamResponse {
        try await connected.transport.exchange(message, by: routes, handler: handler(during: message, by: routes))
    }

    /// Returns the handler of the app's messages that arrive during a message, or during the handshake.
    private nonisolated func handler(
        during message: UpstreamMessage?,
        by routes: [AuthorizedRoute]
    ) -> UpstreamMessageHandler {
        UpstreamMessageHandler(
            id: message?.id,
            redactor: TokenRedactor(routes),
            appRequests: appRequests,
            notify: message?.notify,
            onChange: onChange,
            respond: { [self] response in
                try? await notify(by: routes) { UpstreamMessage(response: response, to: $0) }
            },
            respondLater: { [self] response in
                notifyLater(by: routes) { UpstreamMessage(response: response, to: $0) }
            }
        )
    }

    private nonisolated func notifyLater(
        by routes: [AuthorizedRoute],
        _ message: @escaping @Sendable (ServerInfo) -> UpstreamMessage
    ) {
        tasks.scheduleRequest(of: id) { [self] in try await notify(by: routes, message) }
    }

    /// Sends the app a message that has no response.
    private func notify(
        by routes: [AuthorizedRoute],
        _ message: @Sendable (ServerInfo) -> UpstreamMessage
    ) async throws {
        guard let connected = connector.connected else { return }
        var message = message(connected.server)
        message.mayReuse = false
        _ = try await exchange(message, over: connected, by: routes)
    }

    // MARK: Streams

    /// Reads the app's stream of changes once. Messages are passed to the message handler.
    ///
    /// - Parameters:
    ///   - endpoint: The app.
    ///   - routes: The routes and tokens of the broker.
    ///   - opened: Called when the stream is open.
    /// - Returns: The reason of the end.
    /// - Throws: `AppError`, `CancellationError`.
    func streamChanges(
        of endpoint: Endpoint,
        by routes: [AuthorizedRoute],
        opened: @escaping @Sendable () -> Void
    ) async throws -> ChangeStreamState.End {
        let connected = try await connect(endpoint, by: routes)
        let server = connected.server
        guard server.announcesChanges else { return .unsupported }
        let newSubscription = subscriptions.nextChange()
        let reader = ChangeStreamReader(
            server: server,
            uris: subscriptions.uris,
            limits: .changeStream(idle: timeouts.changeStreamIdle),
            opened: opened,
            newID: { await self.newID() },
            send: { try await self.exchange($0, over: connected, by: routes) },
            cancel: { self.cancel($0, routes) }
        )
        // In session mode the app gets each subscription as a request, and in stateless mode as a parameter of the stream.
        let status = try await withCancellation(
            when: { try await (server.protocolVersion.isStateless ? newSubscription : Promise<Void>()).value() },
            { try await reader.read() }
        )
        switch status ?? nil {
        // A new subscription, or an idle timeout.
        case nil: return .renewed
        // MCP 2025-03-26 and later: a server without such a stream answers 405.
        case 405?: return .unsupported
        case 401?: throw AppError.tokenRequired(routes.contains { $0.secret != nil } ? .rejected : .missing)
        case 404?:
            connector.forget(server)
            return .cut
        default: return .cut
        }
    }

    /// Opens the GET stream of a client session before a request.
    private func openSessionStream(
        _ connected: UpstreamConnector.Connected,
        by routes: [AuthorizedRoute],
        within limit: Duration
    ) async {
        guard let session = connected.server.sessionID else { return }
        await clientSessionStream.open(session, within: limit) { [self] opened in
            var message = UpstreamMessage(response: nil, to: connected.server)
            message.limits = .changeStream(idle: timeouts.changeStreamIdle)
            message.mayReuse = false
            message.opened = opened
            let response = try? await exchange(message, over: connected, by: routes)
            // MCP 2025-03-26 and later: a server without such a stream answers 405.
            guard let response, response.status != 405 else { return false }
            return appRequests?.isEmpty == false && server == connected.server
        }
    }
}
