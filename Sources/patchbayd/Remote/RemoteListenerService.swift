import API
import Logging
import ServiceLifecycle
import Synchronization
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
            let phase = Phase()
            await withTaskGroup { group in
                group.addTask {
                    if let address { await serve(address, in: phase) } else { try? await gracefulShutdown() }
                }
                group.addTask { for await _ in changes { break } }
                await group.next()
                if phase.end() { await group.next() }
                group.cancelAll()
            }
            await listener.endPhase(isLast: Task.isCancelled || Task.isShuttingDownGracefully)
        }
    }

    /// A time in which the address stays the same. Its end stops the server, because a server must not be cancelled.
    private final class Phase: Sendable {
        private struct State {
            /// True from before the bind until the server has ended.
            var isServing = false
            var server: APIServer?
            var isOver = false
        }

        private let state = Mutex(State())

        /// Creates and runs a server, until graceful shutdown or the end of the phase.
        func serve(_ makeServer: () async throws -> APIServer?) async throws {
            let isOver = state.withLock { state in
                state.isServing = !state.isOver
                return state.isOver
            }
            guard !isOver else { return }
            defer { state.withLock { ($0.isServing, $0.server) = (false, nil) } }
            guard let server = try await makeServer() else { return }
            let isStopped = state.withLock { state in
                state.server = server
                return state.isOver
            }
            if isStopped { server.stop() }
            try await server.run()
        }

        /// Stops the server.
        ///
        /// - Returns: True if there is a server, which will end by itself.
        func end() -> Bool {
            let (isServing, server) = state.withLock { state in
                state.isOver = true
                return (state.isServing, state.server)
            }
            server?.stop()
            return isServing
        }
    }

    /// Binds the address, and serves until graceful shutdown or cancellation.
    private func serve(_ address: SocketAddress, in phase: Phase) async {
        var backoff = Backoff(from: Self.retryInterval.shortest, to: Self.retryInterval.longest)
        var isFirst = true
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            do {
                return try await phase.serve {
                    let (socket, security) = try await listener.open(address)
                    guard let security else { return nil }
                    let server = makeServer(try socket.duplicate(), address.port ?? 0, security)
                    socket.close()
                    logger.info("the remote listener is open", metadata: ["address": "\(address)"])
                    return server
                }
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
