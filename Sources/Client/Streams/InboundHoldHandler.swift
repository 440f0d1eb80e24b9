import NIOCore

/// Holds back the input of a channel while HTTP handlers are being replaced.
///
/// The upgrade of NIO keeps bytes, but passes an end of input on at once. The end would overtake the bytes.
final class InboundHoldHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private enum Input {
        case bytes(NIOAny)
        case end
    }

    private var context: ChannelHandlerContext?
    private var isHolding = false
    private var held: [Input] = []

    /// Holds back every input from now on.
    func begin() { isHolding = true }

    /// Passes on what was held back, and every later input at once.
    func release() {
        isHolding = false
        guard let context else { return }
        let inputs = held
        held = []
        for input in inputs {
            switch input {
            case .bytes(let bytes): context.fireChannelRead(bytes)
            case .end: context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            }
        }
        if !inputs.isEmpty { context.fireChannelReadComplete() }
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isHolding { held.append(.bytes(data)) } else { context.fireChannelRead(data) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard isHolding, case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        held.append(.end)
    }
}
