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
import ServiceLifecycle
package import SystemIO

/// One listening socket with the API behind it.
///
/// The socket is made elsewhere, by ourselves or by systemd, so that both are served alike: Hummingbird's own server can
/// only bind an address.
package final class APIServer: Service {
    /// What is listened on, which says how callers are known.
    package enum Kind: Hashable, Sendable {
        /// By the kernel's word, and by grants.
        case unix
        /// By grants alone.
        case tcp(port: UInt16)

        var port: UInt16? {
            if case .tcp(let port) = self { port } else { nil }
        }
    }

    private let listener: CInt
    private let kind: Kind
    private let broker: APIServices
    private let reception: Authenticator
    private let owners: OwnerPolicy
    private let sockets = SocketOwnerLookup()
    private let crowd: ConnectionLimiter
    private let departures = ChannelStorage<DisconnectHandler>()
    private let deliveries = ChannelStorage<ResponseTracker>()
    private let logger: Logger
    private let onOpen: @Sendable () async -> Void

    /// The head of a request may have this many bytes; nothing of ours sends a tenth of it.
    static let headLimit = 16 * 1_024
    /// A connection that says nothing for so long is closed; open requests, event streams above all, are not idle.
    static let idleLimit = TimeAmount.seconds(60)
    /// Callers that may wait to be taken in, as while the broker restarts; the kernel caps it at net.core.somaxconn.
    static let backlog: CInt = 4_096

    /// - Parameters:
    ///   - listener: A bound, listening stream socket; closed when the door is.
    ///   - kind: What it is.
    ///   - broker: What it opens on to.
    ///   - owners: Who may do everything, on a unix socket.
    ///   - origins: Web pages that are let in all the same.
    ///   - crowd: The connections of all doors.
    ///   - logger: Where failures are noted.
    ///   - onOpen: Called once, when connections are being accepted.
    package init(
        owning listener: consuming Descriptor,
        kind: Kind,
        broker: APIServices,
        owners: OwnerPolicy,
        origins: Set<String>,
        crowd: ConnectionLimiter,
        logger: Logger,
        onOpen: @escaping @Sendable () async -> Void
    ) {
        self.listener = listener.release()
        self.kind = kind
        self.broker = broker
        self.crowd = crowd
        self.logger = logger
        self.onOpen = onOpen
        self.owners = owners
        reception = Authenticator(
            border: RequestValidator(port: kind.port, origins: origins),
            owners: owners,
            pairing: broker.pairing,
            sockets: sockets
        )
    }

    /// Serves until graceful shutdown; then idle connections end at once, and open requests when they are answered.
    ///
    /// A caller that was taken in before is answered; one that comes later waits in the socket's queue, for the next broker
    /// where systemd keeps the socket.
    package func run() async throws {
        let http = HTTP1Channel(
            responder: responder(),
            configuration: HTTP1Channel.Configuration(
                additionalChannelHandlers: [QuiesceGraceHandler(), DisconnectHandler()],
                idleTimeout: Self.idleLimit,
                httpDecoderConfiguration: HTTP1Channel.Configuration.DecoderConfiguration(
                    maxHeaderFieldSize: Self.headLimit,
                    maxHeaderListSize: Self.headLimit,
                    maxHeaderFieldCount: 100
                )
            )
        )
        let quiescing = ServerQuiescingHelper(group: .singletonMultiThreadedEventLoopGroup)
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .serverChannelInitializer { [logger, crowd, kind] channel in
                channel.eventLoop.makeCompletedFuture {
                    let doorkeeper = AcceptThrottleHandler(logger: logger, crowd: crowd, isForOwners: kind == .unix) {
                        quiescing.initiateShutdown(promise: nil)
                    }
                    try channel.pipeline.syncOperations.addHandler(doorkeeper)
                    try channel.pipeline.syncOperations.addHandler(quiescing.makeServerChannelHandler(channel: channel))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .bind(listener) { [logger, crowd, owners, sockets, departures, deliveries] channel in
                http.setup(channel: channel, logger: logger).flatMapThrowing { value in
                    let pipeline = channel.pipeline.syncOperations
                    let watch = RequestTimeoutHandler(headLimit: Self.headLimit)
                    try pipeline.addHandler(watch, position: .first)
                    try pipeline.addHandler(
                        PerUserConnectionLimitHandler(crowd: crowd, owners: owners, sockets: sockets),
                        position: .first
                    )
                    departures.set(try pipeline.handler(type: DisconnectHandler.self), for: channel)
                    let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
                    let answers = ResponseTracker()
                    try pipeline.addHandler(RequestProgressHandler(to: watch, answers), position: .before(codec))
                    deliveries.set(answers, for: channel)
                    return value
                }
            }
        // NIO has listened again on the socket, with 128.
        listen(listener, Self.backlog)
        await onOpen()
        try await withGracefulShutdownHandler {
            try await server.executeThenClose { connections in
                await withDiscardingTaskGroup { group in
                    do {
                        for try await connection in connections {
                            let executor = EventLoopTaskExecutor(connection.channel.eventLoop)
                            group.addTask(executorPreference: executor) { [logger] in
                                await http.handle(value: connection, logger: logger)
                            }
                        }
                    } catch {
                        self.logger.error("the door no longer accepts", metadata: ["error": "\(error)"])
                    }
                }
            }
        } onGracefulShutdown: {
            server.channel.pipeline.fireUserInboundEventTriggered(AcceptThrottleHandler.Closing())
        }
    }

    private func responder() -> HTTPChannelHandler.Responder {
        let responder = RouteTable.responder(for: broker)
        return { [self] request, writer, channel in
            let (aftermath, late) = (RequestCleanup(), DeferredResponse())
            do {
                var response = try await response(of: responder, to: request, on: channel, aftermath, late)
                if let answer = late.take() {
                    try await answer(writer)
                } else {
                    Self.protect(&response.headers)
                    try await writer.write(response: response.head, body: response.body)
                }
            } catch {
                // Also where the caller has gone before the head of the answer: then its body is never asked for.
                await aftermath.clear()
                throw error
            }
            await aftermath.clear()
        }
    }

    /// Counts the connection as its caller's. Where there are many connections, one without a grant is closed after its
    /// answer, and one beyond a grant's share always.
    ///
    /// - Throws: `Problem`.
    private func take(_ visitor: Principal, on channel: any Channel, _ aftermath: RequestCleanup) throws {
        guard let grant = visitor.grant else {
            if kind != .unix, crowd.isCrowded { Self.close(channel, after: aftermath) }
            return
        }
        guard !crowd.admit(channel, under: grant.id) else { return }
        Self.close(channel, after: aftermath)
        throw Problem(
            .limit,
            "grant \(grant.id) has \(ConnectionLimiter.limitPerGrant) connections open already",
            next: "close some, or keep one open for many requests"
        )
    }

    private static func close(_ channel: any Channel, after aftermath: RequestCleanup) {
        aftermath.add { try? await channel.close().get() }
    }

    /// Tokens and lists are nobody's to keep, and JSON is never a page.
    static func protect(_ fields: inout HTTPFields) {
        fields[.cacheControl] = "no-store"
        fields[.xContentTypeOptions] = "nosniff"
        if let name = HTTPField.Name("Referrer-Policy") { fields[name] = "no-referrer" }
    }

    private func response(
        of responder: some HTTPResponder<APIRequestContext>,
        to request: Request,
        on channel: any Channel,
        _ aftermath: RequestCleanup,
        _ late: DeferredResponse
    ) async throws -> Response {
        let delivery = (deliveries[channel] ?? ResponseTracker()).begin()
        do {
            let visitor = try await reception.visitor(request.head, on: channel)
            try take(visitor, on: channel, aftermath)
            if kind == .unix, !visitor.isOwner, crowd.isTight {
                throw Problem(.unavailable, "there are too many connections, and the last ones are kept for owners")
            }
            let context = APIRequestContext(
                source: APIRequestContext.Source(
                    application: ApplicationRequestContextSource(channel: channel, logger: logger),
                    channel: channel,
                    visitor: visitor,
                    aftermath: aftermath,
                    late: late,
                    departures: departures[channel] ?? DisconnectHandler(),
                    delivery: delivery
                )
            )
            return try await responder.respond(to: request, context: context)
        } catch {
            if kind != .unix, crowd.isCrowded { Self.close(channel, after: aftermath) }
            // Refused before a route saw it, or of a path that no route fits: that ends in the router itself, outside the
            // middleware.
            return try ProblemMiddleware<APIRequestContext>.response(error, to: request, logger: logger)
        }
    }
}

/// Runs a connection's tasks on the event loop that reads and writes it, so that neither a request nor its answer waits for
/// another thread to wake up.
///
/// Whatever such a task does keeps the loop's other connections waiting: what takes some milliseconds goes elsewhere, as JSON
/// that is large (`JSON.parse`) and images do.
final class EventLoopTaskExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
