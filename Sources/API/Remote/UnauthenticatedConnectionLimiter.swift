import Logging
import NIOCore
import NIOTLS
import Synchronization
import SystemIO
import Transport

/// Limits the connections of the remote listener that have not shown a grant yet.
///
/// At the limit, a new connection ends the oldest one of the address with the most of them. So a machine without a grant
/// delays no other machine, and takes no place of a client with a grant.
package final class UnauthenticatedConnectionLimiter: Sendable {
    /// The maximum number of connections without a grant at once.
    static let maxConnections = 64
    /// The time after which a handshake is closed.
    static let handshakeTimeout = TimeAmount.seconds(10)

    private struct Connection {
        let channel: any Channel
        /// The client's network, see `network(of:)`.
        let network: String
        let number: UInt64
        var isHandshaking = true
    }

    private struct State {
        var connections: [ObjectIdentifier: Connection] = [:]
        var lastNumber: UInt64 = 0
        var refusedHandshakes = 0

        /// - Returns: True if the handshake had not completed.
        mutating func remove(_ id: ObjectIdentifier) -> Bool {
            guard connections.removeValue(forKey: id)?.isHandshaking == true else { return false }
            refusedHandshakes += 1
            return true
        }

        /// Removes the oldest connection of the network with the most connections.
        mutating func removeOldest() -> (any Channel)? {
            let counts = connections.values.reduce(into: [:]) { $0[$1.network, default: 0] += 1 }
            let busiest = counts.max { $0.value < $1.value }?.key
            let oldest = connections.filter { $0.value.network == busiest }.min { $0.value.number < $1.value.number }
            guard let oldest else { return nil }
            _ = remove(oldest.key)
            return oldest.value.channel
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of handshakes that failed, took too long, or were ended at the limit, since the start of the broker.
    package var refusedHandshakes: Int { state.withLock { $0.refusedHandshakes } }

    /// The number of connections without a grant.
    var count: Int { state.withLock { $0.connections.count } }

    /// Counts a new connection until it shows a grant or closes.
    func accepted(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let network = Self.network(of: channel.remoteAddress)
        let removed = state.withLock { state in
            let removed = state.connections.count >= Self.maxConnections ? state.removeOldest() : nil
            state.lastNumber += 1
            state.connections[id] = Connection(channel: channel, network: network, number: state.lastNumber)
            return removed
        }
        _ = removed?.reset()
        channel.closeFuture.whenComplete { [self] _ in _ = handshakeFailed(on: channel) }
    }

    /// Records a completed handshake.
    func handshakeCompleted(on channel: any Channel) {
        state.withLock { $0.connections[ObjectIdentifier(channel)]?.isHandshaking = false }
    }

    /// Stops the count of a connection with a grant.
    func authenticated(_ channel: any Channel) {
        state.withLock { _ = $0.connections.removeValue(forKey: ObjectIdentifier(channel)) }
    }

    /// Stops the count of a connection that ends.
    ///
    /// - Returns: False if the handshake had completed, or had already ended.
    func handshakeFailed(on channel: any Channel) -> Bool {
        state.withLock { $0.remove(ObjectIdentifier(channel)) }
    }

    /// Returns an IPv4 address, or the first 64 bits of an IPv6 address, which one machine can vary behind them.
    static func network(of address: NIOCore.SocketAddress?) -> String {
        let text = address?.ipAddress ?? ""
        guard case .ipv6(let number, _, _)? = SystemIO.SocketAddress(numeric: text, port: 0) else { return text }
        return String(number >> 64, radix: 16)
    }
}

/// Reports the handshake of one connection to the limiter. Placed directly behind TLS.
final class HandshakeHandler: ChannelDuplexHandler {
    typealias InboundIn = NIOAny
    typealias InboundOut = NIOAny
    typealias OutboundIn = NIOAny
    typealias OutboundOut = NIOAny

    private let limiter: UnauthenticatedConnectionLimiter
    private let logger: Logger

    init(limiter: UnauthenticatedConnectionLimiter, logger: Logger) {
        self.limiter = limiter
        self.logger = logger
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { limiter.handshakeCompleted(on: context.channel) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard limiter.handshakeFailed(on: context.channel) else { return context.fireErrorCaught(error) }
        logger.debug(
            "a TLS handshake failed",
            metadata: ["client": "\(context.remoteAddress?.ipAddress ?? "?")", "reason": "\(error)"]
        )
        context.close(promise: nil)
    }

    /// Ends the handshake at its time limit, because TLS may wait some seconds more for the client.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        _ = limiter.handshakeFailed(on: context.channel)
        context.close(mode: mode, promise: promise)
    }
}
