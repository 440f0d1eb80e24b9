import NIOCore

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
