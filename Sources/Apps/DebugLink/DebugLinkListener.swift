package import Logging
import ServiceLifecycle
package import SystemIO

/// A state debugger (`_debug._tcp`): apps connect, and send their states with actions and pictures.
///
/// The protocol has neither authentication nor encryption. Each client that reaches the address can pose as an app. The
/// caller advertises the port.
package final class DebugLinkListener: Service {
    /// The address to listen on by default: 127.0.0.1, any free port.
    package static let loopback = SocketAddress.ipv4(0x7F00_0001, port: 0)
    /// The delay before the next accept when the process has no file descriptor left.
    private static let acceptRetryDelay = Duration.milliseconds(100)

    /// The connected apps and their states.
    package let apps: DebugAppTable
    private let listener: Listener
    private let limits: DebugLinkLimits
    private let otherDebugger: DebuggerDial?
    private let isApproved: @Sendable (DebugApp) async -> Bool
    private let incompleteFrames: IncompleteFrameLimiter
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let clientLogs: ClientLogLimiter

    /// Listens on an address from now on.
    ///
    /// - Parameters:
    ///   - address: The address to listen on; `0.0.0.0` or `::` for all interfaces, port 0 for any free port.
    ///   - limits: The limits of memory and connections.
    ///   - otherDebugger: Dials another debugger, once for each app and again after a failure; nil for none. A
    ///     connection to this listener is closed.
    ///   - isApproved: Decides whether the other debugger may send states to an app.
    ///   - clock: The clock for delays and time limits.
    ///   - logger: The logger.
    /// - Throws: `SocketError`.
    package init(
        on address: SocketAddress = DebugLinkListener.loopback,
        limits: DebugLinkLimits = DebugLinkLimits(),
        forwardingTo otherDebugger: DebuggerDial? = nil,
        isApproved: @escaping @Sendable (DebugApp) async -> Bool = { _ in true },
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger
    ) throws {
        listener = try Listener(on: address)
        apps = DebugAppTable(limits: limits)
        incompleteFrames = IncompleteFrameLimiter(limit: limits.incompleteBytes)
        self.limits = limits
        self.otherDebugger = otherDebugger
        self.isApproved = isApproved
        self.clock = clock
        self.logger = logger
        clientLogs = ClientLogLimiter(logger)
    }

    /// The address with the port that apps connect to.
    package var address: SocketAddress { listener.address }

    /// Serves until graceful shutdown, then closes every connection.
    package func run() async throws {
        logger.info("waiting for apps of the state debugger", metadata: ["address": "\(address)"])
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.clientLogs.reportOmitted(clock: self.clock) }
                await self.accept()
                group.cancelAll()
            }
        }
        listener.close()
        await apps.finish()
    }

    private func accept() async {
        await withDiscardingTaskGroup { group in
            let problems = clientLogs.logger(for: "not accepted")
            while true {
                do {
                    let connection = try await connect(try await listener.accept())
                    group.addTask { await connection.serve() }
                } catch is CancellationError {
                    return
                } catch {
                    problems.warning("an app was not accepted", metadata: ["reason": "\(error)"])
                    // A rejected app is closed. Without a descriptor the connection stays in the accept queue.
                    if (error as? SocketError)?.isExhaustion == true {
                        try? await clock.sleep(for: Self.acceptRetryDelay)
                    }
                }
            }
        }
    }

    /// Adds an accepted connection to the apps.
    private func connect(_ socket: consuming Descriptor) async throws -> DebugLinkConnection {
        let number = socket.number
        guard let peer = SocketAddress.peer(of: number)?.unmapped else {
            throw DebugLinkError.connectionFailed("the app disconnected at once")
        }
        SocketOption.setNoDelay(number)
        SocketOption.setKeepAlive(number)
        let logger = clientLogs.logger(for: peer.host)
        let stream = try DebugLinkSocket(socket, clock: clock)
        let app = try await apps.connect(peer, sender: StateSender(stream, clock: clock))
        let tee = otherDebugger.map { dial in
            DebugLinkTee(
                dial: dial,
                ownPort: address.port,
                clock: clock,
                logger: logger,
                onChange: { [apps] in await apps.setForwarded($0, app) }
            ) { [apps, isApproved] state in
                guard await isApproved(try await apps.app(app)) else { throw DebugLinkError.notApproved(app: app) }
                try await apps.send(state[...], to: app)
            }
        }
        return DebugLinkConnection(
            app: app,
            peer: peer,
            stream: stream,
            apps: apps,
            limits: limits,
            incompleteFrames: incompleteFrames,
            tee: tee,
            logger: logger
        )
    }
}
