import API
import Logging
import ServiceLifecycle
import SystemIO

/// Serves remote clients while the remote listener is on.
struct RemoteListenerService: Service {
    let listener: RemoteListener
    /// Creates the server of a socket.
    let makeServer: @Sendable (consuming Descriptor, UInt16, ListenerSecurity) -> APIServer
    let logger: Logger

    /// The pauses between attempts to bind an address that this machine does not have yet, such as one of a VPN.
    private static let retryInterval = (shortest: Duration.seconds(1), longest: Duration.seconds(60))

    func run() async throws {
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            let (address, changes) = await listener.beginPhase()
            await withTaskGroup { group in
                group.addTask {
                    if let address { await serve(address) } else { try? await gracefulShutdown() }
                }
                group.addTask { for await _ in changes { break } }
                await group.next()
                group.cancelAll()
            }
            await listener.endPhase(isLast: Task.isCancelled || Task.isShuttingDownGracefully)
        }
    }

    /// Binds the address, and serves until graceful shutdown or cancellation.
    private func serve(_ address: SocketAddress) async {
        var backoff = Backoff(from: Self.retryInterval.shortest, to: Self.retryInterval.longest)
        var isFirst = true
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            do {
                let (socket, security) = try await listener.open(address)
                guard let security else { return }
                let server = makeServer(try socket.duplicate(), address.port ?? 0, security)
                socket.close()
                logger.info("the remote listener is open", metadata: ["address": "\(address)"])
                return try await server.run()
            } catch is CancellationError {
                return
            } catch {
                if isFirst {
                    logger.warning(
                        "the remote listener waits for its address; change api.remote or patchbay remote off",
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
