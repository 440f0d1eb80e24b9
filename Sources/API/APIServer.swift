import AccessControl
import Glibc
import HTTPTypes
import HummingbirdCore
package import Logging
import Model
import NIOCore
import NIOExtras
import NIOHTTPTypesHTTP1
import NIOPosix
import Registry
import ServiceLifecycle
import Synchronization
package import SystemIO
import Team
import Transport

/// Serves the HTTP API on one listening socket.
///
/// The socket is created by the caller, because systemd may have created the socket already. Hummingbird's own server
/// can only bind an address.
package final class APIServer: Service {
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
    private let connections = ChannelStorage<ConnectionState>()
    private let logger: Logger
    private let onOpen: @Sendable () async -> Void
    private let state = Mutex(State())

    /// The state of a connection that its requests ask.
    private struct ConnectionState: Sendable {
        var disconnectHandler = DisconnectHandler()
        let responseTracker = ResponseTracker()
    }

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
                hostHeaderRule: transport.hostHeaderRule,
                allowedOrigins: origins,
                answersPreflights: transport.servesPages,
                pageScheme: transport.pageScheme,
                hasOAuth: services.oauth && transport.pageScheme != nil
            ),
            owners: owners,
            directory: services.owners,
            accessStore: services.accessStore,
            sockets: sockets,
            security: security?.transport,
            members: Self.members(security, services),
            hosts: services.endpoints.hosts,
            socketGrant: transport.grant
        )
    }

    /// Returns the part that identifies the clients of the team listener; nil for another listener.
    private static func members(_ security: ListenerSecurity?, _ services: APIServices) -> MemberAuthenticator? {
        guard let team = services.team.running, let security = security?.transport as? any MemberTransportSecurity
        else {
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
            responder: { [self] request, writer, channel in try await respond(to: request, writer, on: channel) },
            configuration: HTTP1Channel.Configuration(
                additionalChannelHandlers: [FirstRequestGraceHandler(), DisconnectHandler()],
                idleTimeout: Self.idleTimeout
            )
        )
        let quiescing = ServerQuiescingHelper(group: .singletonMultiThreadedEventLoopGroup)
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .serverChannelInitializer { [self] channel in
                channel.eventLoop.makeCompletedFuture { try addAcceptHandlers(to: channel, quiescing) }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .bind(listener) { [self] channel in
                channel.eventLoop.makeCompletedFuture { try addTransportHandlers(to: channel) }
                    .flatMap { [logger] in http.setup(channel: channel, logger: logger) }
                    .flatMapThrowing { [self] value in try addRequestHandlers(to: channel).map { value } }
                    .flatMap { $0 }
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
            try await server.executeThenClose { await serve($0, http) }
        } onGracefulShutdown: {
            Self.stopAccepting(on: server.channel)
        }
    }

    private func serve(_ connections: NIOAsyncChannelInboundStream<HTTP1Channel.Value>, _ http: HTTP1Channel) async {
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
                logger.error("the API server stopped accepting connections", metadata: ["error": "\(error)"])
            }
            if state.withLock({ $0.isStopped }) { group.cancelAll() }
        }
    }

    private func addAcceptHandlers(to channel: any Channel, _ quiescing: ServerQuiescingHelper) throws {
        let users = UnixConnectionLimit(limiter: limiter, owners: owners)
        let acceptThrottle = AcceptThrottleHandler(
            logger: logger,
            limiter: limiter,
            share: transport.share,
            unauthenticated: security?.unauthenticated,
            admits: { [transport] in transport != .unix || users.admits($0) }
        ) {
            quiescing.initiateShutdown(promise: nil)
        }
        try channel.pipeline.syncOperations.addHandler(acceptThrottle)
        try channel.pipeline.syncOperations.addHandler(quiescing.makeServerChannelHandler(channel: channel))
    }

    /// Adds the handlers of bytes, in the order in which received bytes pass them. Those of HTTP follow.
    private func addTransportHandlers(to channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        if let security {
            try channel.setKeepAlive()
            try security.transport.secure(channel)
            try pipeline.addHandler(HandshakeHandler(limiter: security.unauthenticated, logger: logger))
        }
        try pipeline.addHandler(ResetHandler(), position: .first)
        // The connections of the team are limited for each host, those of a Unix socket by `UnixConnectionLimit`.
        if transport.share != .team, transport != .unix {
            try pipeline.addHandler(
                PerUserConnectionLimitHandler(
                    limiter: limiter,
                    owners: owners,
                    sockets: sockets,
                    isRemote: security != nil,
                    grant: transport.grant
                )
            )
        }
        try pipeline.addHandler(
            RequestTimeoutHandler(maxHeadSize: Self.maxHeadSize, awaitsHandshake: security != nil)
        )
    }

    /// Adds the handlers of requests between Hummingbird's decoder and its codec, and replaces the decoder.
    ///
    /// - Returns: A future that succeeds when the pipeline can receive bytes.
    private func addRequestHandlers(to channel: any Channel) throws -> EventLoopFuture<Void> {
        let pipeline = channel.pipeline.syncOperations
        let timeoutHandler = try pipeline.handler(type: RequestTimeoutHandler.self)
        let connection = ConnectionState(disconnectHandler: try pipeline.handler(type: DisconnectHandler.self))
        connections.set(connection, for: channel)
        let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
        try pipeline.addHandler(
            RequestProgressHandler(
                notifying: timeoutHandler,
                tracker: connection.responseTracker,
                limiter: limiter
            ),
            position: .before(codec)
        )
        if !pageOrigins.isEmpty {
            try pipeline.addHandler(CORSHandler(allowedOrigins: pageOrigins), position: .before(codec))
        }
        return try RequestDecoder(maxHeadSize: Self.maxHeadSize, notifying: timeoutHandler).replaceOriginal(in: channel)
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

    private func respond(to request: Request, _ writer: consuming ResponseWriter, on channel: any Channel) async throws
    {
        let cleanup = RequestCleanup()
        do {
            switch try await response(to: request, on: channel, cleanup: cleanup) {
            case .response(var response):
                Self.setSecurityHeaders(&response.headers, caching: response.headers[.cacheControl])
                try await writer.write(response: response.head, body: response.body)
            case .stream(let write): try await write(writer)
            }
        } catch {
            // Also runs when the client disconnects before the response head, because the body is then never produced.
            await cleanup.run()
            throw error
        }
        await cleanup.run()
    }

    private func response(to request: Request, on channel: any Channel, cleanup: RequestCleanup) async throws
        -> APIResponse
    {
        let connection = connections[channel] ?? ConnectionState()
        let pendingResponse = connection.responseTracker.begin()
        let issuer = services.oauth ? OAuthIssuer(of: request.head, scheme: transport.pageScheme) : nil
        do {
            let principal: Principal
            do { principal = try await admit(request, on: channel, cleanup: cleanup) } catch {
                if transport != .unix, limiter.isBusy { Self.close(channel, after: cleanup) }
                throw error
            }
            // `RequestValidator` accepts this method for the preflights of allowed origins only.
            if request.method == .options {
                let headers = CORS.preflightHeaders(for: request.head)
                return .response(Response(status: .noContent, headers: headers))
            }
            let (route, parameters) = try RouteTable.route(request.method, request.uri.path, withOAuth: issuer != nil)
            let apiRequest = APIRequest(
                httpRequest: request,
                route: route,
                parameters: parameters,
                principal: principal,
                issuer: issuer,
                channel: channel,
                services: services,
                cleanup: cleanup,
                disconnectHandler: connection.disconnectHandler,
                limiter: limiter,
                pendingResponse: pendingResponse
            )
            return try await route.respond(to: apiRequest)
        } catch {
            return try .problem(error, of: request, issuer: issuer, logger: logger)
        }
    }

    /// Identifies the client of a request, and counts its connection.
    ///
    /// - Throws: `Problem`, `AccessError`.
    private func admit(_ request: Request, on channel: any Channel, cleanup: RequestCleanup) async throws -> Principal {
        let principal = try await authenticator.authenticate(request.head, on: channel)
        try countConnection(channel, of: principal, cleanup: cleanup)
        if transport == .unix, !principal.isOwner, limiter.isReservedCapacityInUse {
            throw Problem(.unavailable, "too many connections are open; the remaining ones are reserved for owners")
        }
        return principal
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
        guard let grant = principal.credential else {
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
}
