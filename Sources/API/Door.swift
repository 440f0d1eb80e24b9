import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import NIOExtras
import NIOPosix
import ServiceLifecycle
package import Sockets

/// One listening socket with the API behind it.
///
/// The socket is made elsewhere, by ourselves or by systemd, so that both are served alike: Hummingbird's own server can
/// only bind an address.
package final class Door: Service {
    private let listener: CInt
    private let broker: Broker
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
    ///   - broker: What it opens on to.
    ///   - logger: Where failures are noted.
    ///   - onOpen: Called once, when connections are being accepted.
    package init(
        owning listener: consuming Descriptor,
        broker: Broker,
        logger: Logger,
        onOpen: @escaping @Sendable () async -> Void
    ) {
        self.listener = listener.release()
        self.broker = broker
        self.logger = logger
        self.onOpen = onOpen
    }

    /// Serves until graceful shutdown; then idle connections end at once, and open requests when they are answered.
    ///
    /// A caller that was taken in before is answered; one that comes later waits in the socket's queue, for the next broker
    /// where systemd keeps the socket.
    package func run() async throws {
        let http = HTTP1Channel(
            responder: responder(),
            configuration: HTTP1Channel.Configuration(
                additionalChannelHandlers: [Arrival()],
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
            .serverChannelInitializer { [logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    let doorkeeper = Doorkeeper(logger: logger) { quiescing.initiateShutdown(promise: nil) }
                    try channel.pipeline.syncOperations.addHandler(doorkeeper)
                    try channel.pipeline.syncOperations.addHandler(quiescing.makeServerChannelHandler(channel: channel))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .bind(listener) { [logger] channel in http.setup(channel: channel, logger: logger) }
        // NIO has listened again on the socket, with 128.
        listen(listener, Self.backlog)
        await onOpen()
        try await withGracefulShutdownHandler {
            try await server.executeThenClose { connections in
                await withDiscardingTaskGroup { group in
                    do {
                        for try await connection in connections {
                            group.addTask { [logger] in await http.handle(value: connection, logger: logger) }
                        }
                    } catch {
                        self.logger.error("the door no longer accepts", metadata: ["error": "\(error)"])
                    }
                }
            }
        } onGracefulShutdown: {
            server.channel.pipeline.fireUserInboundEventTriggered(Doorkeeper.Closing())
        }
    }

    private func responder() -> HTTPChannelHandler.Responder {
        let responder = RouteTable.responder(for: broker)
        return { [logger] request, writer, channel in
            let context = CallContext(
                source: CallContext.Source(
                    application: ApplicationRequestContextSource(channel: channel, logger: logger),
                    caller: await Caller.user(of: channel)
                )
            )
            do {
                let response = try await Self.response(of: responder, to: request, context)
                try await writer.write(response: response.head, body: response.body)
            } catch {
                // Also where the caller has gone before the head of the answer: then its body is never asked for.
                await context.aftermath.clear()
                throw error
            }
            await context.aftermath.clear()
        }
    }

    private static func response(
        of responder: some HTTPResponder<CallContext>,
        to request: Request,
        _ context: CallContext
    ) async throws -> Response {
        do {
            return try await responder.respond(to: request, context: context)
        } catch {
            // A path that no route fits ends in the router itself, outside the middleware.
            return try ProblemMiddleware<CallContext>.response(
                ProblemMiddleware<CallContext>.problem(error, request),
                to: request
            )
        }
    }
}
