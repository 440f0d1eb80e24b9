import NIOCore
import Synchronization

/// Tells a request in progress that its caller has gone: it closed its end of the connection, or all of it.
///
/// Hummingbird looks for that only while an answer is being streamed, and ends the connection for it.
final class DisconnectHandler: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny
    typealias InboundOut = NIOAny
    typealias Farewell = @Sendable () -> Void

    private struct State {
        var hasGone = false
        /// Of the request that runs; HTTP/1.1 has one at a time.
        var farewell: Farewell?
    }

    private let state = Mutex(State())

    /// Sets what is to be done, in the place of what the request before wanted; at once when the caller has gone already.
    func next(_ farewell: @escaping Farewell) {
        let hasGone = state.withLock { state in
            state.farewell = state.hasGone ? nil : farewell
            return state.hasGone
        }
        if hasGone { farewell() }
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
        let farewell = state.withLock { state in
            defer { state = State(hasGone: true) }
            return state.farewell
        }
        farewell?()
    }
}
