import API
import Logging
import ServiceLifecycle
import SystemIO

/// Serves the brokers of other hosts on the team listener.
struct TeamListenerService: Service {
    let address: SocketAddress
    /// Creates the server of a socket.
    let makeServer: @Sendable (consuming Descriptor, UInt16) -> APIServer
    let logger: Logger

    /// The pauses between attempts to bind an address that this machine does not have yet, such as one of a VPN.
    private static let retryInterval = (shortest: Duration.seconds(1), longest: Duration.seconds(60))

    func run() async throws {
        var backoff = Backoff(from: Self.retryInterval.shortest, to: Self.retryInterval.longest)
        var isFirst = true
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            do {
                let socket = try Listener(on: address)
                let server = makeServer(try socket.duplicate(), address.port ?? 0)
                socket.close()
                logger.info("the team listener is open", metadata: ["address": "\(address)"])
                return try await server.run()
            } catch let error as SocketError {
                if isFirst {
                    logger.warning(
                        "the team listener waits for its address; other hosts cannot reach this one; change team.listen",
                        metadata: ["address": "\(address)", "reason": "\(error)"]
                    )
                }
                isFirst = false
                let pause = backoff.next()
                await cancelWhenGracefulShutdown { try? await ContinuousClock().sleep(for: pause) }
            }
        }
    }
}
