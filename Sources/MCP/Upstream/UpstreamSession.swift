import AccessControl
import JSON
import Model
import SystemIO

/// An MCP session with one app: the handshake result, the pooled connections and the request queue.
///
/// Makes one attempt per request and reports the error. `RetryPolicy` decides about retries. Only a lost session is
/// handled here: after a new handshake the request is sent a second time, if that is safe.
actor UpstreamSession {
    /// Identifies one launch of the app by its launch ID, if known, and its port.
    struct Launch: Hashable, Sendable {
        let id: SanitizedText?
        let port: UInt16
    }

    /// Limits of concurrent requests, in total and per holder, and of waiting requests per holder. The limits are low
    /// because AppReveal answers on the app's main thread.
    static let maxConcurrentRequests = 8
    static let perHolderLimit = 4
    static let queueLimit = 64

    nonisolated let id: EndpointID
    let dialer: any Dialer
    let limits: UpstreamLimits
    let streamLimits: UpstreamLimits
    let clock: any Clock<Duration>
    let watch: ElapsedTimer
    /// Queues background work.
    let schedule: @Sendable (BackgroundTask) -> Void
    /// Receives announced changes.
    let onChange: @Sendable (ServerChange) -> Void
    /// The forwarders of the requests in flight, for a client session.
    nonisolated let forwarders = ActiveForwarders()
    /// The handshake parameters of a client session; nil for the shared session.
    let clientParameters: ClientSessionParameters?
    let probe: IdentityProbe
    /// Receives the results of identity checks.
    let onIdentify: @Sendable (IdentityReport) async -> Void
    /// Receives the server's description once per launch.
    private let onConnect: @Sendable (ServerInfo) async -> Void

    private var requestQueue = FairQueue<Promise<Void>>(
        permits: UpstreamSession.maxConcurrentRequests,
        perHolderLimit: UpstreamSession.perHolderLimit,
        queueLimit: UpstreamSession.queueLimit
    )
    private nonisolated let connectSemaphore = AsyncSemaphore(permits: 1)
    var connected: (launch: Launch, server: ServerInfo)?
    var idleConnections: [PooledConnection] = []
    /// The stream of a server with a line transport.
    var lineTransport: LineTransport?
    /// Indicates whether a background task closes idle connections.
    var isClosingIdle = false
    var lastID = 0
    /// URIs of the resources to be notified about.
    var subscribedURIs: Set<String> = []
    /// The client's minimum log level, if set.
    var logLevel: JSON?
    /// The session ID of the GET stream in progress, and a promise that ends the stream.
    var streamTask: (session: String, end: Promise<Void>)?
    /// The launch for which the server gave no session, so that client sessions are not tried again.
    var launchWithoutSessions: Launch?
    /// The time of the last response, and the number of requests in flight.
    var lastResponse: Duration?
    var inFlightCount = 0
    /// Completed when the change stream must be opened again.
    var resubscribe: Promise<Void>?

    init(
        to id: EndpointID,
        dialer: any Dialer,
        limits: UpstreamLimits,
        streamLimits: UpstreamLimits,
        clock: any Clock<Duration>,
        schedule: @escaping @Sendable (BackgroundTask) -> Void,
        onChange: @escaping @Sendable (ServerChange) -> Void,
        clientParameters: ClientSessionParameters? = nil,
        probe: IdentityProbe,
        onIdentify: @escaping @Sendable (IdentityReport) async -> Void,
        onConnect: @escaping @Sendable (ServerInfo) async -> Void
    ) {
        self.id = id
        self.dialer = dialer
        self.limits = limits
        self.streamLimits = streamLimits
        self.clock = clock
        self.schedule = schedule
        self.onChange = onChange
        self.clientParameters = clientParameters
        self.probe = probe
        self.onIdentify = onIdentify
        self.onConnect = onConnect
        watch = ElapsedTimer(clock)
    }

    /// Sends a request over the first route that works. The annotations are those of the called tool. Requests of
    /// different holders take turns.
    ///
    /// - Throws: `UpstreamError`, `CancellationError`.
    func send(
        _ request: MCPRequest,
        to endpoint: Endpoint,
        by admission: Admission,
        annotations: ToolAnnotations
    ) async throws -> AppReply {
        let (holder, end) = (admission.holder, watch.elapsed + admission.limit)
        let isQueued = !requestQueue.acquire(holder)
        if isQueued { try await waitForTurn(holder, admission) }
        defer { releaseTurn(holder) }
        do {
            if isQueued { try admission.check() }
            return try await sendWithRehandshake(
                request,
                to: endpoint,
                by: admission,
                annotations: annotations,
                until: end
            )
        } catch let failure as UpstreamError {
            // The next server at this address may be another launch.
            if failure.indicatesAppGone { invalidate() }
            throw failure
        }
    }

    private func waitForTurn(_ holder: String, _ admission: Admission) async throws {
        guard !requestQueue.isFull(for: holder) else { throw UpstreamError.busy }
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
        by admission: Admission,
        annotations: ToolAnnotations,
        until end: Duration
    ) async throws -> AppReply {
        let routes = admission.routes
        var isSecond = false
        while true {
            let server = try await connect(endpoint, by: routes, until: end)
            if let reply = handleSubscription(request, server) { return reply }
            await ensureSessionStream(server, by: routes)
            let response = try await sendRequest(
                request,
                to: server,
                by: admission,
                annotations: annotations,
                until: end
            )
            let staleness = Self.staleness(of: response, server)
            // Another server than the connected one, or a server that has lost the session.
            if staleness != nil, connected?.server == server { connected = nil }
            // A tool call is repeated only if the protocol guarantees that it was not processed.
            if !isSecond, staleness == .notProcessed || staleness == .possiblyProcessed && request.tool == nil {
                isSecond = true
                continue
            }
            let reply = try Self.appReply(from: response, by: routes)
            recordSubscription(request, reply)
            return reply
        }
    }

    /// Returns the app's server. Performs the handshake once per launch.
    ///
    /// - Throws: `UpstreamError`, `CancellationError`.
    func connect(_ endpoint: Endpoint, by routes: [AuthorizedRoute]) async throws -> ServerInfo {
        guard let first = routes.first else { throw UpstreamError.unreachable(Self.noRoute(to: endpoint)) }
        let launch = Launch(id: endpoint.launchID, port: first.route.port)
        if let server = await connectedServer(launch, by: routes), isFresh { return server }
        let permit = try await connectSemaphore.acquire()
        defer { permit.release() }
        let earlier = await connectedServer(launch, by: routes)
        if let earlier, isFresh { return earlier }
        let server: ServerInfo
        do {
            try await identify(endpoint, routes)
            if let earlier {
                try await compareName(of: earlier, isNew: false, endpoint, routes)
                lastResponse = watch.elapsed
                return earlier
            }
            invalidate()
            server = try await handshake(with: endpoint, by: routes)
            try await compareName(of: server, isNew: true, endpoint, routes)
            lastResponse = watch.elapsed
        } catch UpstreamError.timedOut(let seconds) {
            throw UpstreamError.noHandshake(seconds: seconds)
        }
        connected = (launch, server)
        await onConnect(server)
        return server
    }

    /// The same, with the caller's time limit.
    private func connect(
        _ endpoint: Endpoint,
        by routes: [AuthorizedRoute],
        until end: Duration
    ) async throws -> ServerInfo {
        if let first = routes.first,
            let server = await connectedServer(Launch(id: endpoint.launchID, port: first.route.port), by: routes),
            isFresh
        {
            return server
        }
        let left = end - watch.elapsed
        let server = try await withTimeout(left, clock: clock) { try await self.connect(endpoint, by: routes) }
        guard let server else { throw UpstreamError.noHandshake(seconds: Int(left.components.seconds)) }
        return server
    }

    /// Returns the connected server if the connection is still usable.
    private func connectedServer(_ launch: Launch, by routes: [AuthorizedRoute]) async -> ServerInfo? {
        guard let connected, connected.launch == launch, await isUsable(connected.server, routes) else {
            return nil
        }
        return connected.server
    }

    /// Discards the connection state. The next request performs a new handshake.
    func invalidate() {
        lastResponse = nil
        connected = nil
        idleConnections = []
        lineTransport = nil
    }

    private func sendRequest(
        _ request: MCPRequest,
        to server: ServerInfo,
        by admission: Admission,
        annotations: ToolAnnotations,
        until end: Duration
    ) async throws -> UpstreamResponse {
        let routes = admission.routes
        lastID += 1
        let number = JSONNumber(lastID)
        var params = request.params
        var meta =
            server.meta(params["_meta"], capabilities: request.capabilities, logLevel: request.logLevel) ?? [:]
        if request.notify != nil { meta["progressToken"] = .number(number) }
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        var headers = server.headers(for: request.method, params)
        if server.protocolVersion.isStateless { headers += annotations.parameters.headers(for: params["arguments"]) }
        let message = RPCRequest(
            id: .number(number),
            method: request.method,
            params: params.members.isEmpty ? nil : params
        )
        let forwarder =
            clientParameters == nil ? nil : request.clientRequester.map { ClientRequestForwarder($0, watch) }
        if let forwarder { forwarders.add(forwarder) }
        defer {
            if let forwarder {
                forwarders.remove(forwarder)
                forwarder.end()
            }
        }
        var limits = limits
        limits.idle = request.timeout ?? limits.idle
        limits.total = min(limits.total, end - watch.elapsed)
        inFlightCount += 1
        defer { inFlightCount -= 1 }
        do {
            let response = try await exchange(
                RPCMessage.request(message).json,
                at: server.transport,
                headers: headers,
                by: routes,
                awaiting: .number(number),
                limits: limits,
                admission: admission,
                mayReuse: request.mayRepeat(annotations),
                forwarder: forwarder,
                notify: request.notify
            )
            lastResponse = watch.elapsed
            return response
        } catch {
            if server.transport == .lines || !server.protocolVersion.isStateless, Self.mayStillRun(error) {
                cancel(number, routes)
            }
            throw error
        }
    }

    /// Sends a cancellation. In session mode and over a line transport, closing the stream does not cancel a request.
    func cancel(_ number: JSONNumber, _ routes: [AuthorizedRoute]) {
        let params: JSONObject = [
            "requestId": .number(number), "reason": "the client no longer waits for the response",
        ]
        let message = RPCNotification(method: "notifications/cancelled", params: params)
        schedule(.notify(self, .notification(message), routes))
    }
}
