import NIOCore
import NIOHTTP1

/// NIO's decoder of requests, which also keeps the bytes behind a request that changes the protocol.
///
/// NIO's decoder parses nothing behind such a request, and gives its buffer to nothing but its own removal
/// (`RemoveAfterUpgradeStrategy`). That removal takes another turn of the event loop, and an end of input meanwhile
/// discards the buffer. With this decoder, a stream takes the bytes in the same turn in which it gets the connection.
final class RequestDecoder: ByteToMessageDecoder {
    typealias InboundOut = HTTPServerRequestPart

    private static let maxFieldCount = 100

    private let base: HTTPRequestDecoder
    private let timeoutHandler: RequestTimeoutHandler

    /// - Parameters:
    ///   - maxHeadSize: The maximum size of the header fields in bytes.
    ///   - timeoutHandler: Receives the bytes that are not parsed.
    init(maxHeadSize: Int, notifying timeoutHandler: RequestTimeoutHandler) {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = maxHeadSize
        limits.maxHeaderListSize = maxHeadSize
        limits.maxHeaderFieldCount = Self.maxFieldCount
        base = HTTPRequestDecoder(limitConfiguration: limits)
        self.timeoutHandler = timeoutHandler
    }

    func decoderAdded(context: ChannelHandlerContext) { base.decoderAdded(context: context) }

    func decoderRemoved(context: ChannelHandlerContext) { base.decoderRemoved(context: context) }

    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        // An empty buffer is not kept, so that its memory can be used again.
        defer { timeoutHandler.unparsed = buffer.readableBytes > 0 ? buffer : nil }
        return try base.decode(context: context, buffer: &buffer)
    }

    func decodeLast(
        context: ChannelHandlerContext,
        buffer: inout ByteBuffer,
        seenEOF: Bool
    ) throws -> DecodingState {
        try base.decodeLast(context: context, buffer: &buffer, seenEOF: seenEOF)
    }

    /// Takes the place of NIO's own decoder, which Hummingbird has added.
    ///
    /// - Returns: A future that succeeds when the pipeline can receive bytes.
    func replaceOriginal(in channel: any Channel) throws -> EventLoopFuture<Void> {
        let pipeline = channel.pipeline.syncOperations
        let original = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try pipeline.addHandler(ByteToMessageHandler(self), position: .before(original))
        return pipeline.removeHandler(original)
    }
}
