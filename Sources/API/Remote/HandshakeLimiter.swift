import Logging
import NIOCore
import NIOTLS
import Synchronization

/// Counts the TLS handshakes of the remote listener.
package final class HandshakeLimiter: Sendable {
    /// The maximum number of handshakes at once. Further clients wait in the accept queue.
    static let maxHandshakes = 20
    /// The time after which a handshake is closed.
    static let timeout = TimeAmount.seconds(10)

    private struct State {
        var channels: Set<ObjectIdentifier> = []
        var refused = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of handshakes that failed or took too long, since the start of the broker.
    package var refused: Int { state.withLock { $0.refused } }

    var hasCapacity: Bool { state.withLock { $0.channels.count < Self.maxHandshakes } }

    /// Counts a handshake from the accept of its connection, until `ended` or the close of the connection.
    func began(on channel: any Channel) {
        let id = ObjectIdentifier(channel)
        state.withLock { _ = $0.channels.insert(id) }
        channel.closeFuture.whenComplete { [self] _ in ended(id, successfully: false) }
    }

    /// Returns false if the handshake had already ended.
    @discardableResult
    func ended(on channel: any Channel, successfully: Bool) -> Bool {
        ended(ObjectIdentifier(channel), successfully: successfully)
    }

    @discardableResult
    private func ended(_ id: ObjectIdentifier, successfully: Bool) -> Bool {
        state.withLock { state in
            guard state.channels.remove(id) != nil else { return false }
            if !successfully { state.refused += 1 }
            return true
        }
    }
}

/// Reports the handshake of one connection to the limiter. Placed directly behind TLS.
final class HandshakeHandler: ChannelDuplexHandler {
    typealias InboundIn = NIOAny
    typealias InboundOut = NIOAny
    typealias OutboundIn = NIOAny
    typealias OutboundOut = NIOAny

    private let limiter: HandshakeLimiter
    private let logger: Logger

    init(limiter: HandshakeLimiter, logger: Logger) {
        self.limiter = limiter
        self.logger = logger
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            limiter.ended(on: context.channel, successfully: true)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard limiter.ended(on: context.channel, successfully: false) else { return context.fireErrorCaught(error) }
        logger.debug(
            "a TLS handshake failed",
            metadata: ["client": "\(context.remoteAddress?.ipAddress ?? "?")", "reason": "\(error)"]
        )
        context.close(promise: nil)
    }

    /// Ends the handshake at its time limit, because TLS may wait some seconds more for the client.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        limiter.ended(on: context.channel, successfully: false)
        context.close(mode: mode, promise: promise)
    }
}
