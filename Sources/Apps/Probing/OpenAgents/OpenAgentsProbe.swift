package import Model
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
package import SystemIO

/// Asks OpenAgents servers for their names: one WebSocket connection with one `initialize` request.
package struct OpenAgentsProbe: Sendable {
    /// The maximum time that the server has for its close frame. The answer counts without that frame, too.
    private static let closeTimeout = TimeAmount.milliseconds(500)

    private let dialer: any Dialer
    private let timeout: Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - dialer: Opens the connections.
    ///   - timeout: The maximum time from the dial to the answer.
    ///   - clock: The clock for the timeouts.
    package init(
        dialer: any Dialer,
        timeout: Duration = .seconds(5),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.dialer = dialer
        self.timeout = timeout
        self.clock = clock
    }

    /// Sends `initialize` and returns the name and version that the server reports, if it reports them.
    ///
    /// - Throws: `DialError` if the server is unreachable, too slow, or not an OpenAgents server; `CancellationError`.
    package func identify(_ route: Route) async throws -> ServerIdentity {
        do {
            let identity = try await withTimeout(timeout, clock: clock) { [self] in
                try await exchange(over: try await dialer.dial(route), with: route)
            }
            if let identity { return identity }
            throw DialError(.timedOut, "\(route) did not answer initialize within \(timeout)")
        } catch let failure as DialError {
            throw failure
        } catch let cancelled as CancellationError {
            throw cancelled
        } catch ProbeError.notOpenAgents(let reason) {
            throw DialError(.failed, "\(route) is not an OpenAgents server: \(reason)")
        } catch ProbeError.responseTooLarge {
            let limit = OpenAgentsHandshake.byteLimit
            throw DialError(.failed, "\(route) is not an OpenAgents server: it sent more than \(limit) bytes")
        } catch let error as NIOWebSocketError {
            throw DialError(.failed, "\(route) is not an OpenAgents server: it sent an invalid frame (\(error))")
        } catch {
            try Task.checkCancellation()
            throw DialError(.failed, "\(route) is not an OpenAgents server: it ended the connection before its answer")
        }
    }

    private func exchange(over connection: consuming Connection, with route: Route) async throws -> ServerIdentity {
        let (descriptor, _, permit) = connection.release()
        // Keep the permit until the channel has closed the descriptor.
        defer { withExtendedLifetime(permit) {} }
        let opened = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .withConnectedSocket(descriptor) { channel in
                channel.eventLoop.makeCompletedFuture {
                    (channel, try WebSocketUpgrade.start(on: channel, to: route.hostHeader))
                }
            }
        let (channel, upgrade) = opened
        // A future does not see the cancellation of the task. The close fails the future.
        let webSocket = try await withTaskCancellationHandler {
            try await upgrade.get()
        } onCancel: {
            channel.close(promise: nil)
        }
        return try await webSocket.executeThenClose { inbound, outbound in
            try await outbound.write(.masked(.text, ByteBuffer(string: OpenAgentsHandshake.request)))
            var handshake = OpenAgentsHandshake()
            var frames = inbound.makeAsyncIterator()
            while let frame = try await frames.next() {
                switch try handshake.receive(frame) {
                case .wait: break
                case .pong(let data): try await outbound.write(.masked(.pong, data))
                case .finished(let identity):
                    try await outbound.write(.masked(.connectionClose, WebSocketUpgrade.normalClosure))
                    let close = channel.eventLoop.scheduleTask(in: Self.closeTimeout) { channel.close(promise: nil) }
                    defer { close.cancel() }
                    // The close frame of the server completes the closing handshake (RFC 6455, section 7.1.2).
                    while let frame = try? await frames.next(), frame.opcode != .connectionClose {}
                    return identity
                }
            }
            throw ProbeError.unexpectedEOF
        }
    }
}

extension Route {
    /// The value of the header Host (RFC 9110, section 7.2): address and port, without the interface.
    fileprivate var hostHeader: String {
        switch self {
        case .network(let network) where network.address.contains(":"): "[\(network.address)]:\(network.port)"
        case .network(let network): "\(network.address):\(network.port)"
        case .usb(let usb): "127.0.0.1:\(usb.port)"
        }
    }
}
