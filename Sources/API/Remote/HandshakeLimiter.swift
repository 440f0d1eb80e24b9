import Logging
import NIOCore
import NIOTLS
import StreamBridge
import Synchronization
import SystemIO

/// Limits the TLS handshakes of the remote listener.
///
/// At the limit, a new handshake ends the oldest one of the address with the most handshakes. So a machine that opens
/// connections without a handshake delays no other machine.
package final class HandshakeLimiter: Sendable {
    /// The maximum number of handshakes at once.
    static let maxHandshakes = 64
    /// The time after which a handshake is closed.
    static let timeout = TimeAmount.seconds(10)

    private struct Handshake {
        let channel: any Channel
        /// The client's network, see `network(of:)`.
        let network: String
        let number: UInt64
    }

    private struct State {
        var handshakes: [ObjectIdentifier: Handshake] = [:]
        var lastNumber: UInt64 = 0
        var refused = 0

        /// Removes the oldest handshake of the network with the most handshakes.
        mutating func removeOldest() -> Handshake? {
            let counts = handshakes.values.reduce(into: [:]) { $0[$1.network, default: 0] += 1 }
            let busiest = counts.max { $0.value < $1.value }?.key
            let oldest = handshakes.filter { $0.value.network == busiest }.min { $0.value.number < $1.value.number }
            refused += 1
            return oldest.flatMap { handshakes.removeValue(forKey: $0.key) }
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of handshakes that failed, took too long, or were ended at the limit, since the start of the broker.
    package var refused: Int { state.withLock { $0.refused } }

    /// Counts a handshake from the accept of its connection, until `ended` or the close of the connection.
    func began(on channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let network = Self.network(of: channel.remoteAddress)
        let removed = state.withLock { state in
            let removed = state.handshakes.count >= Self.maxHandshakes ? state.removeOldest() : nil
            state.lastNumber += 1
            state.handshakes[id] = Handshake(channel: channel, network: network, number: state.lastNumber)
            return removed
        }
        _ = removed?.channel.reset()
        channel.closeFuture.whenComplete { [self] _ in ended(id, successfully: false) }
    }

    /// Returns an IPv4 address, or the first 64 bits of an IPv6 address, which one machine can vary behind them.
    static func network(of address: NIOCore.SocketAddress?) -> String {
        let text = address?.ipAddress ?? ""
        guard case .ipv6(let number, _, _)? = SystemIO.SocketAddress(numeric: text, port: 0) else { return text }
        return String(number >> 64, radix: 16)
    }

    /// Returns false if the handshake had already ended.
    @discardableResult
    func ended(on channel: any Channel, successfully: Bool) -> Bool {
        ended(ObjectIdentifier(channel), successfully: successfully)
    }

    @discardableResult
    private func ended(_ id: ObjectIdentifier, successfully: Bool) -> Bool {
        state.withLock { state in
            guard state.handshakes.removeValue(forKey: id) != nil else { return false }
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
