import Glibc
import Logging
import NIOCore

/// Pauses accept(2) while the process has no free descriptors, at the connection limit, and at
/// shutdown. Clients wait in the accept queue of the socket meanwhile.
///
/// Without this handler, NIO 2.101 spins in the first case. Its AcceptBackoffHandler holds back only the reads that are
/// requested after an error. The read that met the error stays registered with the selector.
final class AcceptThrottleHandler: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    /// A pipeline event that stops accepting. Clients that connect later wait in the accept queue of the socket.
    struct StopAcceptingEvent: Sendable {}

    /// The interval between two checks for free descriptors and free capacity.
    static let retryInterval = TimeAmount.milliseconds(10)
    /// The time that an accepted connection needs to reach the code that reads requests.
    static let drainDelay = TimeAmount.milliseconds(50)

    private let logger: Logger
    private let limiter: ConnectionLimiter
    private let share: ConnectionLimiter.Share
    /// Counts the connections without a grant; nil for a listener without TLS.
    private let unauthenticated: UnauthenticatedConnectionLimiter?
    /// Counts an accepted connection for its user. Returns false if the connection must be closed.
    private let admits: @Sendable (any Channel) -> Bool
    private let onStopped: @Sendable () -> Void
    private var isPaused = false
    private var isStopping = false
    private var isExhausted = false
    /// Accepted connections above the limit, of which nothing is read. NIO accepts several connections per event, and
    /// each listener learns only from its own connections that the limit is reached.
    private var waiting: [any Channel] = []

    /// Creates a handler that calls `onStopped` once after `StopAcceptingEvent`, when all accepted connections have
    /// been passed on.
    init(
        logger: Logger,
        limiter: ConnectionLimiter,
        share: ConnectionLimiter.Share,
        unauthenticated: UnauthenticatedConnectionLimiter?,
        admits: @escaping @Sendable (any Channel) -> Bool = { _ in true },
        onStopped: @escaping @Sendable () -> Void
    ) {
        self.logger = logger
        self.limiter = limiter
        self.share = share
        self.unauthenticated = unauthenticated
        self.admits = admits
        self.onStopped = onStopped
    }

    func read(context: ChannelHandlerContext) {
        if !isPaused { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        isExhausted = false
        let channel = unwrapInboundIn(data)
        // Before the connection has any handler, so that a burst of such connections delays no other client.
        guard admits(channel) else { return channel.close(promise: nil) }
        waiting.append(channel)
        passOnWaiting(context)
        if !isPaused, !hasCapacity { pauseAccepting(context) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        for channel in waiting { channel.close(promise: nil) }
        waiting = []
        context.fireChannelInactive()
    }

    /// Passes on accepted connections, as many as the limit permits.
    private func passOnWaiting(_ context: ChannelHandlerContext) {
        while let channel = waiting.first {
            let isOpen = limiter.openConnection(in: share, unauthenticated: unauthenticated?.count ?? 0)
            guard isOpen else { return }
            waiting.removeFirst()
            channel.closeFuture.whenComplete { [limiter, share] _ in limiter.connectionClosed(in: share) }
            unauthenticated?.accepted(channel)
            context.fireChannelRead(wrapInboundOut(channel))
        }
    }

    private var hasCapacity: Bool { limiter.hasCapacity(in: share, unauthenticated: unauthenticated?.count ?? 0) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        if !isExhausted { logger.warning("cannot accept connections; clients wait", metadata: ["reason": "\(error)"]) }
        isExhausted = true
        // The error is not forwarded: the AcceptBackoffHandler would make clients wait for one second longer than
        // necessary.
        pauseAccepting(context)
    }

    /// Stops accepting for `retryInterval`, and longer until there is capacity.
    private func pauseAccepting(_ context: ChannelHandlerContext) {
        stopReading(context)
        // NIO calls a handler on the event loop of its channel, so the loop is the current one.
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.retryInterval) { [self] in
            guard !isStopping else { return }
            if !waiting.isEmpty {
                passOnWaiting(context)
                context.fireChannelReadComplete()
            }
            guard waiting.isEmpty, hasCapacity else { return pauseAccepting(context) }
            isPaused = false
            // Setting autoRead also requests the next connection.
            try? context.channel.syncOptions?.setOption(.autoRead, value: true)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is StopAcceptingEvent else { return context.fireUserInboundEventTriggered(event) }
        isStopping = true
        stopReading(context)
        context.eventLoop.scheduleTask(in: Self.drainDelay, onStopped)
    }

    private func stopReading(_ context: ChannelHandlerContext) {
        isPaused = true
        // Removes the socket from the selector, even while a read is pending.
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
    }
}

/// Delays the shutdown of a new connection until its first request, for at most 500 ms.
///
/// The request may still be on the network or in the kernel. If the connection closed at once, the client would get no
/// response.
final class FirstRequestGraceHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny
    typealias InboundOut = NIOAny

    /// The time after which a silent connection is closed.
    static let gracePeriod = TimeAmount.milliseconds(500)

    private var hasReceivedData = false
    private var quiesceTask: Scheduled<Void>?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        hasReceivedData = true
        // Forwards the request first: the next handler closes an idle connection at once, and a busy one after its
        // response.
        context.fireChannelRead(data)
        if quiesceTask != nil { quiesce(context) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent, !hasReceivedData else {
            return context.fireUserInboundEventTriggered(event)
        }
        // NIO calls a handler on the event loop of its channel, so the loop is the current one.
        quiesceTask = context.eventLoop.assumeIsolated().scheduleTask(in: Self.gracePeriod) { [self] in quiesce(context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        quiesceTask?.cancel()
        quiesceTask = nil
    }

    private func quiesce(_ context: ChannelHandlerContext) {
        quiesceTask?.cancel()
        quiesceTask = nil
        context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
}
