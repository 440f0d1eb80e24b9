import NIOCore

/// Tells a request in progress that its caller has gone: it closed its end of the connection, or all of it.
///
/// Hummingbird looks for that only while an answer is being streamed, and ends the connection for it.
final class Departures: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny
    typealias InboundOut = NIOAny

    private var hasGone = false
    /// Of the request that runs; HTTP/1.1 has one at a time.
    private var listener: AsyncStream<Never>.Continuation?

    /// Returns when the caller has gone, or when it is cancelled.
    static func next(on channel: any Channel) async {
        let (departure, listener) = AsyncStream.makeStream(of: Never.self)
        channel.eventLoop.execute {
            guard let departures = try? channel.pipeline.syncOperations.handler(type: Departures.self) else { return }
            departures.hasGone ? listener.finish() : (departures.listener = listener)
        }
        for await _ in departure {}
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed { leave() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        hasGone = true
        listener?.finish()
        listener = nil
    }
}
