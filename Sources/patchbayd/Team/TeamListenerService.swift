import API
import Logging
import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// The reason why the team listener does not listen, for `patchbay team` and `patchbay doctor`.
final class TeamListenerError: Sendable {
    private let error = Mutex<SocketError?>(nil)

    /// Nil if the listener is open, or has not started yet.
    var problem: Problem? {
        error.withLock { $0 }.map {
            Problem(
                .unavailable,
                "other hosts cannot reach this one: \($0)",
                hint: "set another team.listen, then sudo systemctl restart patchbayd"
            )
        }
    }

    func set(_ new: SocketError?) { error.withLock { $0 = new } }
}

/// Serves the brokers of other hosts on the team listener.
struct TeamListenerService: Service {
    let address: SocketAddress
    let error: TeamListenerError
    /// Creates the server of a socket.
    let makeServer: @Sendable (consuming Descriptor, UInt16) -> APIServer
    let logger: Logger

    /// The pauses between attempts to bind an address that this machine does not have yet, such as one of a VPN.
    private static let retryInterval = (shortest: Duration.seconds(1), longest: Duration.seconds(60))

    func run() async throws {
        var backoff = Backoff(from: Self.retryInterval.shortest, to: Self.retryInterval.longest)
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            do {
                let socket = try Listener(on: address)
                let server = makeServer(try socket.duplicate(), address.port ?? 0)
                socket.close()
                self.error.set(nil)
                logger.info("the team listener is open", metadata: ["address": "\(address)"])
                return try await server.run()
            } catch let error as SocketError {
                if self.error.problem == nil {
                    logger.warning(
                        "the team listener waits for its address; other hosts cannot reach this one; change team.listen",
                        metadata: ["address": "\(address)", "reason": "\(error)"]
                    )
                }
                self.error.set(error)
                let pause = backoff.next()
                await cancelWhenGracefulShutdown { try? await ContinuousClock().sleep(for: pause) }
            }
        }
    }
}
