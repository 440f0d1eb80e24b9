import Glibc
import Logging
import NIOCore

/// Decides when the door takes the next caller in: not while the process is out of descriptors, not while there are as many
/// connections as there may be, and not when it closes. Callers wait in the socket's queue meanwhile.
///
/// NIO 2.101 alone would go round at full speed in the first case: what its AcceptBackoffHandler holds back are the reads
/// asked for after an error, while the one that met the error keeps its interest in the socket.
final class AcceptThrottleHandler: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias OutboundIn = Never

    /// Sent through the pipeline when no more callers are to be taken in; those that come now wait in the socket's queue.
    struct Closing: Sendable {}

    /// Between two looks whether there are descriptors again.
    static let pause = TimeAmount.milliseconds(100)
    /// What a caller that was just taken in needs to get to where requests are read.
    static let settling = TimeAmount.milliseconds(50)

    private let logger: Logger
    private let crowd: ConnectionLimiter
    private let isForOwners: Bool
    private let onSettled: @Sendable () -> Void
    private var isShut = false
    private var isClosing = false
    private var isStarved = false

    /// `onSettled` is called once after `Closing`, when whoever was taken in has been let through.
    init(logger: Logger, crowd: ConnectionLimiter, isForOwners: Bool, onSettled: @escaping @Sendable () -> Void) {
        self.logger = logger
        self.crowd = crowd
        self.isForOwners = isForOwners
        self.onSettled = onSettled
    }

    func read(context: ChannelHandlerContext) {
        if !isShut { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        isStarved = false
        crowd.enter()
        unwrapInboundIn(data).closeFuture.whenComplete { [crowd] _ in crowd.leave() }
        context.fireChannelRead(data)
        if !isShut, !crowd.hasRoom(forOwners: isForOwners) { pause(context) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        if !isStarved { logger.warning("callers wait at the door", metadata: ["reason": "\(error)"]) }
        isStarved = true
        // The error ends here: the AcceptBackoffHandler would make callers wait for a second longer than is needed.
        pause(context)
    }

    /// Takes nobody in for a while, and until there is room.
    private func pause(_ context: ChannelHandlerContext) {
        shut(context)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { [self] in
            guard !isClosing else { return }
            guard crowd.hasRoom(forOwners: isForOwners) else { return pause(context) }
            isShut = false
            // Asks for the next connection by itself.
            try? context.channel.syncOptions?.setOption(.autoRead, value: true)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is Closing else { return context.fireUserInboundEventTriggered(event) }
        isClosing = true
        shut(context)
        context.eventLoop.scheduleTask(in: Self.settling, onSettled)
    }

    private func shut(_ context: ChannelHandlerContext) {
        isShut = true
        // Takes the socket from the selector, also when a read of it is pending.
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
    }
}

/// Lets a caller that has just come in say what it wants when the door closes behind it.
///
/// Its request may be on the way or in the kernel still; turned out at once it would get no answer, though it did all right.
final class QuiesceGraceHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny
    typealias InboundOut = NIOAny

    /// One that says nothing for so long is turned out.
    static let patience = TimeAmount.milliseconds(500)

    private var hasAsked = false
    private var eviction: Scheduled<Void>?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        hasAsked = true
        // The request first: the next handler closes an idle connection at once, and a busy one after its answer.
        context.fireChannelRead(data)
        if eviction != nil { evict(context) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent, !hasAsked else { return context.fireUserInboundEventTriggered(event) }
        eviction = context.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { [self] in evict(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        eviction?.cancel()
        eviction = nil
    }

    private func evict(_ context: ChannelHandlerContext) {
        eviction?.cancel()
        eviction = nil
        context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
}
