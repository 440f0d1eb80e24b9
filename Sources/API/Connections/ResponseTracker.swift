import NIOCore
import Synchronization

/// Counts the started requests and the flushed responses of a connection.
///
/// HTTP/1.1 sends responses in the order of the requests, so a request and its response have the same number.
final class ResponseTracker: Sendable {
    private struct State {
        var begun = 0
        var flushed = 0
    }

    private let state = Mutex(State())

    /// Starts the next request.
    func begin() -> PendingResponse {
        let number = state.withLock { state in
            state.begun += 1
            return state.begun
        }
        return PendingResponse(of: number, on: self)
    }

    /// Counts a response when its last byte is in the kernel. Called on the connection's event loop, in the same tick
    /// as the write.
    func responseFlushed() { state.withLock { $0.flushed += 1 } }

    fileprivate func isFlushed(_ number: Int) -> Bool { state.withLock { $0.flushed >= number } }
}

/// The response to one request, which may not be flushed yet.
struct PendingResponse: Sendable {
    private let number: Int
    private let tracker: ResponseTracker

    fileprivate init(of number: Int, on tracker: ResponseTracker) {
        self.number = number
        self.tracker = tracker
    }

    /// True when the kernel has the complete response.
    var isFlushed: Bool { tracker.isFlushed(number) }
}

/// Notifies the current request when its client closes the connection, completely or for writing.
///
/// Hummingbird itself detects that only while a response is streamed, and then closes the connection.
final class DisconnectHandler: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = NIOAny
    typealias InboundOut = NIOAny
    typealias Callback = @Sendable () -> Void

    private struct State {
        var isDisconnected = false
        /// The callback of the current request. HTTP/1.1 has one request at a time.
        var callback: Callback?
    }

    private let state = Mutex(State())

    /// True if the client has closed the connection, completely or for writing.
    var isDisconnected: Bool { state.withLock { $0.isDisconnected } }

    /// Sets the callback of the current request, in place of the previous request's callback. If the client has already
    /// disconnected, the callback runs at once.
    func onDisconnect(_ callback: @escaping Callback) {
        let isDisconnected = state.withLock { state in
            state.callback = state.isDisconnected ? nil : callback
            return state.isDisconnected
        }
        if isDisconnected { callback() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed { clientDisconnected() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        clientDisconnected()
        context.fireChannelInactive()
    }

    private func clientDisconnected() {
        let callback = state.withLock { state in
            defer { state = State(isDisconnected: true) }
            return state.callback
        }
        callback?()
    }
}
