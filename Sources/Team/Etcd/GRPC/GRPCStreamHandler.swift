import NIOCore
import NIOHPACK
import NIOHTTP2

/// Translates between the frames of an HTTP/2 stream and the messages of a gRPC call.
///
/// Sends the headers when the stream is active. Fires each message, and then the status or an `EtcdError`, once.
final class GRPCStreamHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = GRPCResponseReader.Part
    typealias OutboundIn = GRPCRequestPart
    typealias OutboundOut = HTTP2Frame.FramePayload

    private let path: String
    private let authority: String
    private var reader = GRPCResponseReader()
    private var hasEnded = false

    init(path: String, authority: String) {
        self.path = path
        self.authority = authority
    }

    func channelActive(context: ChannelHandlerContext) {
        let headers: HPACKHeaders = [
            ":method": "POST", ":scheme": "https", ":path": path, ":authority": authority,
            "content-type": "application/grpc", "te": "trailers",
            // A server without a leader answers with an error instead of waiting for one.
            "hasleader": "true",
        ]
        context.writeAndFlush(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
        context.fireChannelActive()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let part = unwrapOutboundIn(data)
        let bytes = GRPCFrameDecoder.frame(part.message)
        let frame = HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(bytes), endStream: part.isLast))
        context.write(wrapOutboundOut(frame), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasEnded else { return }
        do throws(EtcdError) {
            switch unwrapInboundIn(data) {
            case .headers(let payload):
                fire(try reader.receive(payload.headers, isLast: payload.endStream), context)
            case .data(let payload):
                guard case .byteBuffer(let bytes) = payload.data else { return }
                fire(try reader.receive(bytes, isLast: payload.endStream), context)
            default: break
            }
        } catch {
            fail(error, context)
        }
    }

    private func fire(_ parts: [GRPCResponseReader.Part], _ context: ChannelHandlerContext) {
        for part in parts where !hasEnded {
            if case .end = part { hasEnded = true }
            context.fireChannelRead(wrapInboundOut(part))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(.interrupted(reason: "the connection to \(authority) was lost"), context)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error as? EtcdError ?? .interrupted(reason: "the connection to \(authority) failed: \(error)"), context)
    }

    private func fail(_ error: EtcdError, _ context: ChannelHandlerContext) {
        guard !hasEnded else { return }
        hasEnded = true
        context.fireErrorCaught(error)
    }
}

/// A message to the server.
struct GRPCRequestPart: Sendable {
    let message: [UInt8]
    /// True if no further message follows.
    let isLast: Bool
}
