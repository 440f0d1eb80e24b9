import NIOCore

/// Passes the bytes of one channel to the channel of its partner.
///
/// Two handlers, one in each channel, make a byte stream of two connections. Both channels must run on one event loop,
/// allow half-closure and have no automatic reads. The rules are those of a TCP relay:
/// - Back-pressure: a channel is read only while the partner's channel is writable. One exception is NIO's: when an end of
///   input has arrived, it reads the receive buffer of the kernel to its end (`BaseSocketChannel.readEOF0`).
/// - An end of input (FIN, close_notify) becomes an end of output at the partner, after the bytes before it.
/// - A failure of one channel resets the other, so a cut stream never looks complete.
///
/// Handlers between this one and the end of the pipeline receive no more bytes, and their writes fail.
final class GlueHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = NIOAny
    typealias OutboundOut = ByteBuffer

    private var partner: GlueHandler?
    private var context: ChannelHandlerContext?
    private var isStarted = false
    private var isReadPending = false
    private var hasInputEnded = false
    private var isOutputEnding = false
    /// True when every byte is written, and the end of output is on its way.
    private var isOutputWritten = false
    private var hasOutputEnded = false
    /// The result of the newest write. The end of output waits for it.
    private var lastWrite: EventLoopFuture<Void>?

    /// Makes two handlers partners of each other.
    static func pair() -> (GlueHandler, GlueHandler) {
        let (one, other) = (GlueHandler(), GlueHandler())
        (one.partner, other.partner) = (other, one)
        return (one, other)
    }

    /// Begins to read. Bytes of the peer that arrived before are passed on at once.
    func start() {
        isStarted = true
        readIfPossible()
    }

    /// Writes bytes that do not come from the partner.
    func send(_ bytes: ByteBuffer) {
        write(bytes)
        context?.flush()
    }

    /// Passes bytes of the peer to the partner that did not come through this handler.
    func receive(_ bytes: ByteBuffer) { partner?.send(bytes) }

    // MARK: From the network

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        partner = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { partner?.write(unwrapInboundIn(data)) }

    func channelReadComplete(context: ChannelHandlerContext) {
        partner?.context?.flush()
        readIfPossible()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard let partner, context.channel.isWritable, partner.isReadPending else { return }
        partner.readIfPossible()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        inputEnded()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // TLS may report an error of its own shutdown when both directions are complete. The partner may still write.
        if !(hasInputEnded && isOutputWritten) { fail() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if isOutputWritten {
            // NIO reports an end of input after the end of output as a close. A failure has called `errorCaught` before.
            inputEnded()
        } else {
            fail()
        }
        context.fireChannelInactive()
    }

    // MARK: From the handlers behind this one

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        promise?.fail(ChannelError.ioOnClosedChannel)
    }

    func flush(context: ChannelHandlerContext) {}

    func read(context: ChannelHandlerContext) {}

    // MARK: From the partner

    private func write(_ bytes: ByteBuffer) {
        guard let context, !isOutputEnding else { return }
        let promise = context.eventLoop.makePromise(of: Void.self)
        // The promise is of the event loop that calls this handler.
        promise.futureResult.assumeIsolated().whenFailure { _ in self.fail() }
        lastWrite = promise.futureResult
        context.write(wrapOutboundOut(bytes), promise: promise)
    }

    private func readIfPossible() {
        guard isStarted, let context, !hasInputEnded else { return }
        isReadPending = !(partner?.context?.channel.isWritable ?? false)
        if !isReadPending { context.read() }
    }

    private func endOutput() {
        guard let context, !isOutputEnding else { return }
        isOutputEnding = true
        context.flush()
        let written = lastWrite ?? context.eventLoop.makeSucceededVoidFuture()
        // Of the event loop that calls this handler, as is the next promise.
        written.assumeIsolated().whenSuccess {
            guard let context = self.context else { return }
            self.isOutputWritten = true
            let promise = context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenComplete { _ in
                self.hasOutputEnded = true
                self.closeIfFinished()
            }
            context.close(mode: .output, promise: promise)
        }
    }

    private func inputEnded() {
        hasInputEnded = true
        partner?.endOutput()
        closeIfFinished()
    }

    private func closeIfFinished() {
        guard hasInputEnded, hasOutputEnded else { return }
        context?.close(promise: nil)
    }

    /// Resets both channels.
    private func fail() {
        let partner = partner
        self.partner = nil
        reset()
        partner?.partner = nil
        partner?.reset()
    }

    private func reset() {
        guard let channel = context?.channel else { return }
        _ = channel.reset()
    }
}
