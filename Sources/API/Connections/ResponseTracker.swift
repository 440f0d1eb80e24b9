import NIOCore
import Synchronization

/// How many requests of a connection were taken up, and how many answers the kernel has got whole.
///
/// HTTP/1.1 answers in the order of the requests, so that the two are counted alike.
final class ResponseTracker: Sendable {
    private struct State {
        var begun = 0
        var done = 0
    }

    private let state = Mutex(State())

    /// A request is taken up.
    func begin() -> PendingResponse {
        let number = state.withLock { state in
            state.begun += 1
            return state.begun
        }
        return PendingResponse(of: number, on: self)
    }

    /// The last byte of an answer is out; said on the connection's event loop, in the same turn.
    func end() { state.withLock { $0.done += 1 } }

    fileprivate func hasDone(_ number: Int) -> Bool { state.withLock { $0.done >= number } }
}

/// The answer to one request on its way out.
struct PendingResponse: Sendable {
    private let number: Int
    private let deliveries: ResponseTracker

    fileprivate init(of number: Int, on deliveries: ResponseTracker) {
        self.number = number
        self.deliveries = deliveries
    }

    /// Whether the kernel has all of it.
    var isDone: Bool { deliveries.hasDone(number) }
}

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

/// What is known of each connection, for as long as it stands.
final class ChannelStorage<Value: Sendable>: Sendable {
    private let values = Mutex<[ObjectIdentifier: Value]>([:])

    subscript(channel: any Channel) -> Value? { values.withLock { $0[ObjectIdentifier(channel)] } }

    func set(_ value: Value, for channel: any Channel) {
        let id = ObjectIdentifier(channel)
        values.withLock { $0[id] = value }
        // Another connection may be where this one was as soon as it is gone.
        channel.closeFuture.whenComplete { [self] _ in values.withLock { $0[id] = nil } }
    }
}
