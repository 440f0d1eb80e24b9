import NIOCore

/// Ends a connection on which nothing arrived for too long; stands behind an `IdleStateHandler`.
///
/// A broker that is stopped (SIGSTOP) or hung keeps its sockets open, so only silence tells.
final class IdleTimeoutHandler: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    private let error: ClientError

    init(error: ClientError) { self.error = error }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else {
            context.fireUserInboundEventTriggered(event)
            return
        }
        context.fireErrorCaught(error)
        context.close(promise: nil)
    }
}
