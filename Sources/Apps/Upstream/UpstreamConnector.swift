import AccessControl
import Model
import Synchronization
import SystemIO

/// Connects to an app's server once per launch, and verifies its identity at the start of each connection epoch.
///
/// An epoch lasts while requests are in flight, and for `freshness` after the last response.
final class UpstreamConnector: Sendable {
    /// Identifies one launch of the app by its launch ID, if known, its port, and the observation of the port.
    struct Launch: Hashable, Sendable {
        let id: SanitizedText?
        let port: UInt16
        var observation: LaunchObservation?
    }

    /// A server after the handshake.
    struct Connected: Sendable {
        let launch: Launch
        let server: ServerInfo
        let transport: any UpstreamTransport
    }

    private struct State {
        var connected: Connected?
        /// The client of a profile's server. It is kept while its launch and route are the same, because the server may
        /// hold a session for it.
        var profileClient: (launch: Launch, client: ProfileClient)?
        /// The launch for which the server gave no session, so that client sessions are not tried again.
        var launchWithoutSessions: Launch?
        /// The server of the last handshake, which the next handshake with the same launch begins with.
        var known: (launch: Launch, server: ServerInfo)?
        /// The time of the last response, and the number of requests in flight.
        var lastResponse: Duration?
        var inFlightCount = 0
    }

    /// The validity of an identity check after the last response, in milliseconds. Many servers close the connection
    /// after each response.
    static let freshness = Duration.milliseconds(250)

    let pool: ConnectionPool
    private let limits: ResponseLimits
    private let tasks: BackgroundTasks
    /// The handshake parameters of a client session; nil for the shared session.
    let clientParameters: ClientSessionParameters?
    private let profiles: ProfileContext
    private let identityVerifier: IdentityVerifier
    /// Receives the results of identity checks.
    private let onIdentify: @Sendable (IdentityReport) async -> Void
    /// Receives the server's description once per launch.
    private let onConnect: @Sendable (ServerInfo) async -> Void
    private let semaphore = AsyncSemaphore(permits: 1)
    private let state = Mutex(State())

    init(
        over pool: ConnectionPool,
        limits: ResponseLimits,
        tasks: BackgroundTasks,
        clientParameters: ClientSessionParameters?,
        profiles: ProfileContext,
        probe: IdentityProbe,
        onIdentify: @escaping @Sendable (IdentityReport) async -> Void,
        onConnect: @escaping @Sendable (ServerInfo) async -> Void
    ) {
        self.pool = pool
        self.limits = limits
        self.tasks = tasks
        self.clientParameters = clientParameters
        self.profiles = profiles
        identityVerifier = IdentityVerifier(probe: probe)
        self.onIdentify = onIdentify
        self.onConnect = onConnect
    }

    /// The server of the last handshake, if it is still valid.
    var connected: Connected? { state.withLock { $0.connected } }

    /// Returns the app's server. Performs the handshake once per launch.
    ///
    /// - Parameters:
    ///   - endpoint: The app.
    ///   - routes: The routes and tokens of the principal.
    ///   - logLevel: The log level of a new client session.
    ///   - handler: Handles the server's own messages.
    /// - Returns: The server with its transport.
    /// - Throws: `AppError`, `CancellationError`.
    func connect(
        _ endpoint: Endpoint,
        by routes: [AuthorizedRoute],
        logLevel: JSON?,
        handler: UpstreamMessageHandler
    ) async throws -> Connected {
        guard let route = routes.first?.route, let launch = endpoint.launch(over: routes) else {
            throw AppError.unreachable(Self.noRoute(to: endpoint))
        }
        if let connected = await verified(launch, by: routes) { return connected }
        let permit = try await semaphore.acquire()
        defer { permit.release() }
        let earlier = await usable(launch, by: routes)
        if let earlier, isFresh { return earlier }
        let connected: Connected
        do {
            try await report(identityVerifier.verify(endpoint, by: routes))
            if let earlier {
                if let info = try await info(of: earlier, endpoint, by: routes, handler: handler) {
                    try await report(identityVerifier.verify(info, of: endpoint, on: route))
                }
                recordResponse()
                return earlier
            }
            await invalidate()
            let known = state.withLock { $0.known }
            let handshake = UpstreamHandshake(
                pool: pool,
                routes: routes,
                known: known?.launch == launch ? known?.server : nil,
                clientParameters: clientParameters,
                logLevel: logLevel,
                limits: limits,
                handler: handler
            )
            let (server, transport): (ServerInfo, any UpstreamTransport) =
                if let profile = profiles.index[endpoint.kind] {
                    try await handshake.run(with: endpoint) { self.transport(to: launch, at: $0, as: profile) }
                } else {
                    try await handshake.run(with: endpoint)
                }
            if endpoint.kind != .appreveal {
                try await report(identityVerifier.verify(server.info, of: endpoint, on: route))
            }
            connected = Connected(launch: launch, server: server, transport: transport)
        } catch AppError.timedOut(let seconds, let cause) {
            throw AppError.noHandshake(seconds: seconds, cause: cause)
        } catch AppError.mismatch(let route, let found) {
            await invalidate()
            await onIdentify(.mismatch(route, found: found))
            throw AppError.mismatch(route, found: found)
        }
        recordResponse()
        state.withLock { ($0.connected, $0.known) = (connected, (launch, connected.server)) }
        if let lines = connected.transport as? LineTransport { closeWhenUnused(lines) }
        await onConnect(connected.server)
        return connected
    }

    /// Returns the connected server of a launch if it needs neither a handshake nor an identity check.
    func verified(_ launch: Launch, by routes: [AuthorizedRoute]) async -> Connected? {
        guard let connected = await usable(launch, by: routes), isFresh else { return nil }
        return connected
    }

    /// Returns the connected server of a launch if it can be used without a new handshake.
    private func usable(_ launch: Launch, by routes: [AuthorizedRoute]) async -> Connected? {
        guard let connected, connected.launch == launch, await connected.transport.isUsable(over: routes) else {
            return nil
        }
        return connected
    }

    /// Indicates whether the identity check is still valid.
    private var isFresh: Bool {
        let now = pool.watch.elapsed
        return state.withLock { state in
            if state.inFlightCount > 0 || state.connected?.server.transport == .lines { return true }
            return state.lastResponse.map { now - $0 < Self.freshness } ?? false
        }
    }

    /// Asks a known server for its `serverInfo`.
    ///
    /// - Returns: Nil for a server with sessions, because another server answers 404 to the session ID; nil for
    ///   AppReveal, which has queries of its own.
    private func info(
        of connected: Connected,
        _ endpoint: Endpoint,
        by routes: [AuthorizedRoute],
        handler: UpstreamMessageHandler
    ) async throws -> JSONObject? {
        let server = connected.server
        guard endpoint.kind != .appreveal, server.sessionID == nil else { return nil }
        var message =
            server.protocolVersion.isStateless
            ? ServerInfo.discovery(of: server)
            : ServerInfo.handshake(for: clientParameters, version: server.protocolVersion)
        message.limits = limits
        let response = try await connected.transport.exchange(message, by: routes, handler: handler)
        if let failure = response.rejection(by: routes) { throw failure }
        guard case .success(let result)? = response.outcome else { return nil }
        return (result["serverInfo"] ?? result["_meta"]?["io.modelcontextprotocol/serverInfo"])?.object ?? [:]
    }

    /// Returns the transport to a profile's server.
    private func transport(to launch: Launch, at route: Route, as profile: Profile) -> ProfileTransport {
        let client = state.withLock { state in
            if let (earlier, client) = state.profileClient, earlier == launch, client.route == route { return client }
            let client = ProfileClient(profile, at: route, over: pool, access: profiles.access, tasks: tasks)
            state.profileClient = (launch, client)
            return client
        }
        return ProfileTransport(client: client, artifacts: profiles.artifacts)
    }

    private func report(_ identity: IdentityReport?) async {
        if let identity { await onIdentify(identity) }
    }

    /// Releases an unused stream in lines, which closes the stream.
    private func closeWhenUnused(_ transport: LineTransport) {
        tasks.schedule { [weak self, weak transport, clock = pool.clock] in
            repeat {
                guard (try? await clock.sleep(for: LineTransport.checkInterval)) != nil else { return }
            } while await transport?.shouldStayOpen() ?? false
            if let transport { self?.release(transport) }
        }
    }

    private func release(_ transport: LineTransport) {
        state.withLock { state in
            if let lines = state.connected?.transport as? LineTransport, lines === transport { state.connected = nil }
        }
    }

    // MARK: The connection epoch

    /// Records the start of a request. Call `endRequest` afterwards.
    func beginRequest() { state.withLock { $0.inFlightCount += 1 } }

    func endRequest() { state.withLock { $0.inFlightCount -= 1 } }

    /// Records a response, which proves that the verified server is still there.
    func recordResponse() {
        let now = pool.watch.elapsed
        state.withLock { $0.lastResponse = now }
    }

    /// Discards the connection state. The next request performs a new handshake.
    func invalidate(endingLaunch: Bool = false) async {
        state.withLock { state in
            state.lastResponse = nil
            state.connected = nil
            if endingLaunch { state.known = nil }
        }
        await pool.removeAll()
    }

    /// Ends the session that a profile's server holds for the broker.
    func endProfileSession() async { await state.withLock { $0.profileClient?.client }?.endSession() }

    /// Forgets a server that has lost the session. The next request performs a new handshake.
    func forget(_ server: ServerInfo) {
        state.withLock { if $0.connected?.server == server { $0.connected = nil } }
    }

    // MARK: Client sessions

    /// Returns whether the server may have client sessions.
    func mayHaveSessions(_ connected: Connected, speaking isStateless: Bool) -> Bool {
        guard connected.server.protocolVersion.isStateless else { return connected.server.sessionID != nil }
        return isStateless && state.withLock { $0.launchWithoutSessions } != connected.launch
    }

    /// Records that this launch of the app has no sessions.
    func recordNoSessions() { state.withLock { $0.launchWithoutSessions = $0.connected?.launch } }

    /// The error for an endpoint without routes.
    static func noRoute(to endpoint: Endpoint) -> DialError {
        DialError(.noRoute, "\(endpoint.id) has no route now; start the app, or see `patchbay show \(endpoint.id)`")
    }
}

extension Endpoint {
    /// The launch behind the first route.
    var launch: UpstreamConnector.Launch? {
        routes.first.map { UpstreamConnector.Launch(id: launchID, port: $0.port) }
    }

    /// The launch behind the first route that a principal may use.
    func launch(over routes: [AuthorizedRoute]) -> UpstreamConnector.Launch? {
        routes.first.map {
            UpstreamConnector.Launch(id: launchID, port: $0.route.port, observation: $0.observation)
        }
    }
}
