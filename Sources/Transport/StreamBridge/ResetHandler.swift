package import NIOCore
import NIOPosix

/// Resets a connection from any position of its pipeline.
///
/// The handler is the first of the pipeline. A close from a later handler passes TLS, which announces an end
/// (close_notify, RFC 8446, section 6.1). The peer would take a stream that was cut for a complete one.
package final class ResetHandler: ChannelDuplexHandler {
    package typealias InboundIn = NIOAny
    package typealias OutboundIn = NIOAny
    package typealias OutboundOut = ByteBuffer

    private var context: ChannelHandlerContext?
    /// True if a close waits until the kernel has every byte that was written before. NIO discards the rest, such as the
    /// close_notify of TLS for a peer that reads slowly.
    var writesBeforeClose = false

    package init() {}

    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    package func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard writesBeforeClose, mode == .all else { return context.close(mode: mode, promise: promise) }
        let written = context.eventLoop.makePromise(of: Void.self)
        // The promise is of the event loop that calls this handler.
        written.futureResult.assumeIsolated().whenComplete { _ in context.close(mode: mode, promise: promise) }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
    }

    /// Closes the connection and discards unsent bytes (SO_LINGER 0): the peer receives RST. Called on the event loop.
    func reset() {
        guard let context else { return }
        guard let socket = context.channel as? any SocketOptionProvider else { return context.close(promise: nil) }
        // The channel completes the future on the event loop that calls this handler.
        socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).assumeIsolated().whenComplete { _ in
            context.close(promise: nil)
        }
    }
}

extension Channel {
    /// Resets the connection. The pipeline must begin with a `ResetHandler`.
    ///
    /// - Returns: A future that succeeds when the connection is closed.
    package func reset() -> EventLoopFuture<Void> {
        eventLoop.execute {
            do { try self.pipeline.syncOperations.handler(type: ResetHandler.self).reset() } catch {
                self.close(promise: nil)
            }
        }
        return closeFuture
    }
}
