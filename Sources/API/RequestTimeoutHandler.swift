import Model
import NIOCore
import NIOHTTP1

/// Closes connections that are slow to say what they want: a thousand of them would otherwise be a closed door.
///
/// Sits before the HTTP decoder; `RequestProgressHandler` behind it tells when a head was whole, and when a request was.
final class RequestTimeoutHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// From the first byte to the end of a head; the first head counts from when the connection stands.
    static let headPatience = TimeAmount.seconds(5)
    /// For the body behind it, which is 64 KiB at most.
    static let bodyPatience = TimeAmount.seconds(30)

    private enum State {
        /// Nothing is being said.
        case quiet
        case head
        case body
    }

    private let headLimit: Int
    private var state = State.quiet
    private var received = 0
    private var deadline: Scheduled<Void>?

    init(headLimit: Int) { self.headLimit = headLimit }

    func handlerAdded(context: ChannelHandlerContext) { begin(.head, within: Self.headPatience, context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if state == .quiet { begin(.head, within: Self.headPatience, context) }
        received += unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
        // Still no end of the head. The decoder has limits for fields, and none for the first line.
        if state == .head, received > headLimit {
            refuse(Problem(.headTooLarge, "the head has more than \(headLimit) bytes"), context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    /// The head is whole.
    func headEnded(_ context: ChannelHandlerContext) { begin(.body, within: Self.bodyPatience, context) }

    /// The request is whole.
    func requestEnded() {
        state = .quiet
        deadline?.cancel()
        deadline = nil
    }

    private func begin(_ state: State, within patience: TimeAmount, _ context: ChannelHandlerContext) {
        self.state = state
        received = 0
        deadline?.cancel()
        let loop = context.eventLoop.assumeIsolated()
        deadline = loop.scheduleTask(in: patience) { [self] in
            // Who has said nothing at all asks for no answer; and behind a whole head there may be one already.
            guard state == .head, received > 0 else { return context.close(promise: nil) }
            refuse(Problem(.timeout, "the head did not come within \(patience.nanoseconds / 1_000_000_000) s"), context)
        }
    }

    private func refuse(_ problem: Problem, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: problem.lastWords)), promise: nil)
        context.close(promise: nil)
    }
}
