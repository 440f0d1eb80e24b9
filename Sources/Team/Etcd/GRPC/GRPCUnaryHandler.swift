import NIOCore

/// Sends one request and completes a promise with its response.
final class GRPCUnaryHandler: ChannelInboundHandler {
    typealias InboundIn = GRPCResponseReader.Part
    typealias OutboundOut = GRPCRequestPart

    private let request: [UInt8]
    private let promise: EventLoopPromise<ByteBuffer>
    private var response: ByteBuffer?

    init(request: [UInt8], promise: EventLoopPromise<ByteBuffer>) {
        self.request = request
        self.promise = promise
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(GRPCRequestPart(message: request, isLast: true)), promise: nil)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .message(let message): response = message
        case .end(let status):
            if status.code != .ok {
                promise.fail(EtcdError.status(status))
            } else if let response {
                promise.succeed(response)
            } else {
                promise.fail(EtcdError.invalidResponse(reason: "the response has no message"))
            }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { promise.fail(error) }
}
