import NIOCore
import NIOHTTP1

/// Reads the responses of a kept-alive connection, one at a time, and stops reading while no task takes the bytes.
final class ResponseReader: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    /// The end of a connection.
    enum End: Error {
        /// The peer closed the connection in order, while it had sent no part of a response. A server closes an idle
        /// connection in this way.
        case idleClose
        /// The connection ended in another way, with the error of NIO if there is one.
        case broken((any Error)?)
        /// The peer sent nothing for the time limit.
        case timedOut
    }

    /// The number of buffered bytes above which the socket is not read.
    private static let highWaterMark = 256 << 10

    private var parts: [HTTPClientResponsePart] = []
    private var bytes = 0
    /// The end of the connection; nil while it is open.
    private(set) var end: End?
    private var waiter: EventLoopPromise<[HTTPClientResponsePart]>?
    private var isPaused = false
    private var hasReceived = false
    private var context: ChannelHandlerContext?

    /// True if the connection can carry another request.
    var isIdle: Bool { end == nil && parts.isEmpty && waiter == nil }

    /// Begins the next exchange.
    func begin() { hasReceived = false }

    /// Waits for the next parts.
    ///
    /// - Parameters:
    ///   - loop: The event loop of the connection.
    ///   - limit: The time to wait for a part; nil for no limit.
    /// - Returns: The parts that have arrived, at least one. The future fails with `End`.
    func next(on loop: any EventLoop, within limit: Duration?) -> EventLoopFuture<[HTTPClientResponsePart]> {
        if !parts.isEmpty {
            defer { (parts, bytes) = ([], 0) }
            if isPaused { setReading(true) }
            return loop.makeSucceededFuture(parts)
        }
        if let end { return loop.makeFailedFuture(end) }
        let promise = loop.makePromise(of: [HTTPClientResponsePart].self)
        waiter?.fail(CancellationError())
        waiter = promise
        if let limit {
            let reader = NIOLoopBound(self, eventLoop: loop)
            let timeout = loop.scheduleTask(in: TimeAmount(limit)) { reader.value.finish(.timedOut) }
            promise.futureResult.whenComplete { _ in timeout.cancel() }
        }
        return promise.futureResult
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        finish(.broken(nil))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        hasReceived = true
        if let waiter {
            self.waiter = nil
            return waiter.succeed([part])
        }
        if case .body(let buffer) = part { bytes += buffer.readableBytes }
        parts.append(part)
        if bytes > Self.highWaterMark, !isPaused { setReading(false) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finish(.broken(error))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // An end without the end of TLS is an error before this call.
        finish(hasReceived ? .broken(nil) : .idleClose)
        context.fireChannelInactive()
    }

    private func setReading(_ isReading: Bool) {
        isPaused = !isReading
        try? context?.channel.syncOptions?.setOption(.autoRead, value: isReading)
    }

    private func finish(_ end: End) {
        guard self.end == nil else { return }
        self.end = end
        waiter?.fail(end)
        waiter = nil
    }
}
