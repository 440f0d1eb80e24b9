import AccessControl
import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
package import Logging
import Model
import NIOCore
import NIOExtras
import NIOHTTPTypesHTTP1
import NIOPosix
import Registry
import ServiceLifecycle
import Transport
import Synchronization
package import SystemIO

/// Serves the HTTP API on one listening socket.
///
/// The socket is created by the caller, because systemd may have created the socket already. Hummingbird's own server
/// can only bind an address.
package final class APIServer: Service {
    /// The kind of socket, which decides how clients are identified.
    package enum Transport: Hashable, Sendable {
        /// Clients are identified by their peer credentials, or by a grant.
        case unix
        /// Clients are identified by a grant.
        case tcp(port: UInt16)
        /// Clients on other machines, over TLS, are identified by their key or by a grant.
        case remote(port: UInt16)
        /// Brokers of other hosts, over TLS, are identified by their certificates, and name their clients.
        case team(port: UInt16)
        /// Every client has this grant, whatever user it runs as.
        case socketGrant(String)

        var hostRule: RequestValidator.HostRule {
            switch self {
            case .unix, .socketGrant: .loopback(port: nil)
            case .tcp(let port): .loopback(port: port)
            case .remote, .team: .any
            }
        }

        /// True for the loopback listener, where only a token identifies a client. A browser reaches no socket, and rejects the
        /// certificate of the other listeners.
        var servesPages: Bool { if case .tcp = self { true } else { false } }

        /// The grant of every client; nil for other transports.
        var grant: String? {
            if case .socketGrant(let grant) = self { grant } else { nil }
        }

        var share: ConnectionLimiter.Share {
            switch self {
            case .unix: .owners
            case .tcp: .loopback
            case .socketGrant: .grantSockets
            case .remote: .remote
            case .team: .team
            }
        }
    }

    private let listener: CInt
    private let transport: Transport
    private let services: APIServices
    private let authenticator: Authenticator
    private let owners: OwnerPolicy
    /// The origins of the pages that may read responses.
    private let pageOrigins: Set<String>
    private let sockets = SocketOwnerLookup()
    private let limiter: ConnectionLimiter
    private let security: ListenerSecurity?
    private let disconnectHandlers = ChannelStorage<DisconnectHandler>()
    private let responseTrackers = ChannelStorage<ResponseTracker>()
    private let logger: Logger
    private let onOpen: @Sendable () async -> Void
    private let state = Mutex(State())

    private struct State {
        /// The listening socket, while the server accepts connections.
        var channel: (any Channel)?
        var isStopped = false
        var isDrained = false
    }

    /// The maximum size of a request head in bytes. Patchbay's own clients send less than a tenth of that.
    static let maxHeadSize = 16 * 1_024
    /// The time after which a connection without an open request is closed. An open event stream is not idle.
    static let idleTimeout = TimeAmount.seconds(60)
    /// The length of the accept queue, for clients that connect while the broker restarts. The kernel limits the length
    /// to net.core.somaxconn.
    static let backlog: CInt = 4_096

    /// - Parameters:
    ///   - listener: A bound stream socket that listens. The server closes the socket when the server stops.
    ///   - transport: The kind of the socket.
    ///   - services: The dependencies of the route handlers.
    ///   - owners: The users with full access on a Unix socket.
    ///   - origins: The allowed web origins.
    ///   - limiter: The connection counters of all listeners.
    ///   - security: TLS; nil unless the transport is `remote` or `team`.
    ///   - logger: The logger for failures.
    ///   - onOpen: Called once, when the server accepts connections.
    package init(
        owning listener: consuming Descriptor,
        transport: Transport,
        services: APIServices,
        owners: OwnerPolicy,
        origins: Set<String>,
        limiter: ConnectionLimiter,
        security: ListenerSecurity? = nil,
        logger: Logger,
        onOpen: @escaping @Sendable () async -> Void
    ) {
        self.listener = listener.release()
        self.transport = transport
        self.services = services
        self.limiter = limiter
        self.security = security
        self.logger = logger
        self.onOpen = onOpen
        self.owners = owners
        pageOrigins = transport.servesPages ? origins : []
        authenticator = Authenticator(
            validator: RequestValidator(
                hostRule: transport.hostRule,
                allowedOrigins: origins,
                answersPreflights: transport.servesPages
            ),
            owners: owners,
            accessStore: services.accessStore,
            sockets: sockets,
            security: security?.transport,
            members: Self.members(security, services),
            hosts: services.registry.teamHosts,
            socketGrant: transport.grant
        )
    }

    /// Returns the part that identifies the clients of the team listener; nil for another listener.
    private static func members(_ security: ListenerSecurity?, _ services: APIServices) -> MemberAuthenticator? {
        guard let team = services.team, let security = security?.transport as? any MemberTransportSecurity else {
            return nil
        }
        return MemberAuthenticator(security, members: team.members, connections: team.connections)
    }

    /// Serves until graceful shutdown. Idle connections then close at once, and busy connections after their response.
    ///
    /// A connection that was accepted before the shutdown gets its response. A later client stays in the accept queue
    /// of the socket. If systemd keeps the socket, the next daemon serves that client.
    package func run() async throws {
        let http = HTTP1Channel(
            responder: responder(),
            configuration: HTTP1Channel.Configuration(
                additionalChannelHandlers: [QuiesceGraceHandler(), DisconnectHandler()],
                idleTimeout: Self.idleTimeout
            )
        )
        let quiescing = ServerQuiescingHelper(group: .singletonMultiThreadedEventLoopGroup)
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .serverChannelInitializer { [logger, limiter, owners, transport, security] channel in
                channel.eventLoop.makeCompletedFuture {
                    let users = UnixConnectionLimit(limiter: limiter, owners: owners)
                    let acceptThrottle = AcceptThrottleHandler(
                        logger: logger,
                        limiter: limiter,
                        share: transport.share,
                        unauthenticated: security?.unauthenticated,
                        admits: { transport != .unix || users.admits($0) }
                    ) {
                        quiescing.initiateShutdown(promise: nil)
                    }
                    try channel.pipeline.syncOperations.addHandler(acceptThrottle)
                    try channel.pipeline.syncOperations.addHandler(quiescing.makeServerChannelHandler(channel: channel))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .bind(listener) {
                [
                    logger, limiter, owners, pageOrigins, sockets, transport, security, disconnectHandlers,
                    responseTrackers
                ]
                channel in
                http.setup(channel: channel, logger: logger).flatMapThrowing { value in
                    let pipeline = channel.pipeline.syncOperations
                    let timeoutHandler = RequestTimeoutHandler(
                        maxHeadSize: Self.maxHeadSize,
                        awaitsHandshake: security != nil
                    )
                    try pipeline.addHandler(timeoutHandler, position: .first)
                    // The connections of the team are limited for each host, those of a Unix socket by `UnixConnectionLimit`.
                    if transport.share != .team, transport != .unix {
                        try pipeline.addHandler(
                            PerUserConnectionLimitHandler(
                                limiter: limiter,
                                owners: owners,
                                sockets: sockets,
                                isRemote: security != nil,
                                grant: transport.grant
                            ),
                            position: .first
                        )
                    }
                    if let security {
                        try channel.setKeepAlive()
                        let handshake = HandshakeHandler(limiter: security.unauthenticated, logger: logger)
                        try pipeline.addHandler(handshake, position: .first)
                        try security.transport.secure(channel)
                    }
                    try pipeline.addHandler(ResetHandler(), position: .first)
                    disconnectHandlers.set(try pipeline.handler(type: DisconnectHandler.self), for: channel)
                    let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
                    let tracker = ResponseTracker()
                    try pipeline.addHandler(
                        RequestProgressHandler(notifying: timeoutHandler, tracker: tracker, limiter: limiter),
                        position: .before(codec)
                    )
                    responseTrackers.set(tracker, for: channel)
                    if !pageOrigins.isEmpty {
                        try pipeline.addHandler(CORSHandler(allowedOrigins: pageOrigins), position: .before(codec))
                    }
                    let decoder = RequestDecoder(maxHeadSize: Self.maxHeadSize, notifying: timeoutHandler)
                    return try decoder.replaceOriginal(in: channel).map { value }
                }.flatMap { $0 }
            }
        // NIO has called listen(2) again, with a backlog of 128.
        listen(listener, Self.backlog)
        let isStopped = state.withLock { state in
            state.channel = server.channel
            return state.isStopped || state.isDrained
        }
        if isStopped { Self.stopAccepting(on: server.channel) }
        await onOpen()
        try await withGracefulShutdownHandler {
            try await server.executeThenClose { connections in
                await withDiscardingTaskGroup { group in
                    do {
                        for try await connection in connections {
                            let executor = EventLoopTaskExecutor(connection.channel.eventLoop)
                            group.addTask(executorPreference: executor) { [logger] in
                                // An orderly end of TLS may wait some seconds for the client.
                                await withTaskCancellationHandler {
                                    await http.handle(value: connection, logger: logger)
                                } onCancel: {
                                    _ = connection.channel.reset()
                                }
                            }
                        }
                    } catch {
                        self.logger.error(
                            "the API server stopped accepting connections",
                            metadata: ["error": "\(error)"]
                        )
                    }
                    if self.state.withLock({ $0.isStopped }) { group.cancelAll() }
                }
            }
        } onGracefulShutdown: {
            Self.stopAccepting(on: server.channel)
        }
    }

    /// Stops the server at once: `run()` closes all connections and returns.
    ///
    /// A cancellation of `run()` is no substitute. It would drop a connection that was accepted and has no task yet,
    /// which NIOAsyncChannel answers with a trap.
    package func stop() {
        let channel = state.withLock { state in
            state.isStopped = true
            return state.channel
        }
        if let channel { Self.stopAccepting(on: channel) }
    }

    /// Stops the server: idle connections close at once, and others after their response. `run()` then returns.
    package func drain() {
        let channel = state.withLock { state in
            state.isDrained = true
            return state.channel
        }
        if let channel { Self.stopAccepting(on: channel) }
    }

    private static func stopAccepting(on channel: any Channel) {
        channel.pipeline.fireUserInboundEventTriggered(AcceptThrottleHandler.StopAcceptingEvent())
    }

    private func responder() -> HTTPChannelHandler.Responder {
        let responder = RouteTable.responder(for: services)
        return { [self] request, writer, channel in
            let (cleanup, deferred) = (RequestCleanup(), DeferredResponse())
            do {
                var response = try await response(
                    of: responder,
                    to: request,
                    on: channel,
                    cleanup: cleanup,
                    deferred: deferred
                )
                if let write = deferred.take() {
                    try await write(writer)
                } else {
                    let caching = response.headers[.cacheControl]
                    Self.setSecurityHeaders(&response.headers, caching: caching)
                    try await writer.write(response: response.head, body: response.body)
                }
            } catch {
                // Also runs when the client disconnects before the response head, because the body is then never
                // produced.
                await cleanup.run()
                throw error
            }
            await cleanup.run()
        }
    }

    /// Counts a connection for the grant or the host of its principal.
    ///
    /// A TCP connection without a grant closes after its response if the server is busy. A connection above the limit
    /// of its grant always closes after the response.
    ///
    /// - Throws: `Problem`.
    private func countConnection(_ channel: any Channel, of principal: Principal, cleanup: RequestCleanup) throws {
        if let host = principal.member?.host {
            security?.unauthenticated.authenticated(channel)
            let isCounted = limiter.acquire(channel, grant: "host:\(host)", limit: ConnectionLimiter.maxPerHost)
            guard !isCounted else { return }
            Self.close(channel, after: cleanup)
            throw Problem(.limit, "the host \(host) has \(ConnectionLimiter.maxPerHost) connections open already")
        }
        guard let grant = principal.grant else {
            if transport != .unix, limiter.isBusy { Self.close(channel, after: cleanup) }
            return
        }
        security?.unauthenticated.authenticated(channel)
        guard !limiter.acquire(channel, grant: grant.id) else { return }
        Self.close(channel, after: cleanup)
        throw Problem(
            .limit,
            "grant \(grant.id) has \(ConnectionLimiter.maxPerGrant) connections open already",
            hint: "close some, or reuse one connection for many requests"
        )
    }

    private static func close(_ channel: any Channel, after cleanup: RequestCleanup) {
        cleanup.add { try? await channel.close().get() }
    }

    /// Sets the response headers that forbid caches, media type sniffing and referrers. `caching` is the rule of a route that
    /// allows caches.
    static func setSecurityHeaders(_ fields: inout HTTPFields, caching: String? = nil) {
        fields[.cacheControl] = caching ?? "no-store"
        fields[.xContentTypeOptions] = "nosniff"
        if let name = HTTPField.Name("Referrer-Policy") { fields[name] = "no-referrer" }
    }

    private func response(
        of responder: some HTTPResponder<APIRequestContext>,
        to request: Request,
        on channel: any Channel,
        cleanup: RequestCleanup,
        deferred: DeferredResponse
    ) async throws -> Response {
        let pendingResponse = (responseTrackers[channel] ?? ResponseTracker()).begin()
        do {
            let principal = try await authenticator.authenticate(request.head, on: channel)
            try countConnection(channel, of: principal, cleanup: cleanup)
            // `RequestValidator` accepts this method for the preflights of allowed origins only.
            if request.method == .options {
                return Response(status: .noContent, headers: CORS.preflightHeaders(for: request.head))
            }
            if transport == .unix, !principal.isOwner, limiter.isReservedCapacityInUse {
                throw Problem(.unavailable, "too many connections are open; the remaining ones are reserved for owners")
            }
            let context = APIRequestContext(
                source: APIRequestContext.Source(
                    application: ApplicationRequestContextSource(channel: channel, logger: logger),
                    channel: channel,
                    principal: principal,
                    cleanup: cleanup,
                    deferredResponse: deferred,
                    disconnectHandler: disconnectHandlers[channel] ?? DisconnectHandler(),
                    limiter: limiter,
                    pendingResponse: pendingResponse
                )
            )
            return try await responder.respond(to: request, context: context)
        } catch {
            if transport != .unix, limiter.isBusy { Self.close(channel, after: cleanup) }
            // The middleware does not see two kinds of errors: failed authentication, and the router's error for an
            // unknown path.
            return try ProblemMiddleware<APIRequestContext>.response(error, to: request, logger: logger)
        }
    }
}
