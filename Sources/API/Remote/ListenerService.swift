package import Logging
import ServiceLifecycle
package import SystemIO

/// Serves at an address while there is one. Waits for an address that this machine does not have yet, such as one of a
/// VPN.
package struct ListenerService: Service {
    /// The name in the log, such as `the team listener`.
    private let name: String
    /// The settings to change while the address cannot be bound.
    private let advice: String
    /// Returns the address; nil while the listener is off.
    private let address: @Sendable () async -> SocketAddress?
    /// Returns a stream that yields after changes of the address; nil if the address does not change.
    private let changes: (@Sendable () -> AsyncStream<Void>)?
    /// Binds the address, and serves until the address changes or the broker stops.
    private let serve: @Sendable (SocketAddress) async throws -> Void
    private let logger: Logger

    /// The pauses between attempts to bind.
    private static let retryInterval = (shortest: Duration.seconds(1), longest: Duration.seconds(60))

    package init(
        _ name: String,
        advice: String,
        address: @escaping @Sendable () async -> SocketAddress?,
        changes: (@Sendable () -> AsyncStream<Void>)? = nil,
        logger: Logger,
        serve: @escaping @Sendable (SocketAddress) async throws -> Void
    ) {
        self.name = name
        self.advice = advice
        self.address = address
        self.changes = changes
        self.logger = logger
        self.serve = serve
    }

    package func run() async throws {
        let changes = changes?()
        await serveWhileOn()
        guard let changes else { return }
        for await _ in changes.cancelOnGracefulShutdown() { await serveWhileOn() }
    }

    private func serveWhileOn() async {
        var backoff = Backoff(from: Self.retryInterval.shortest, to: Self.retryInterval.longest)
        var isReported = false
        while !Task.isCancelled, !Task.isShuttingDownGracefully, let address = await address() {
            do { try await serve(address) } catch is CancellationError { return } catch {
                if !isReported {
                    logger.warning(
                        "\(name) waits for its address; \(advice)",
                        metadata: ["address": "\(address)", "reason": "\(error)"]
                    )
                }
                isReported = true
                await pause(backoff.next(), while: address)
            }
        }
    }

    /// Waits while the address stays the same.
    private func pause(_ duration: Duration, while old: SocketAddress) async {
        let changes = changes?()
        guard await address() == old else { return }
        await cancelWhenGracefulShutdown {
            await withTaskGroup { group in
                group.addTask { try? await ContinuousClock().sleep(for: duration) }
                if let changes { group.addTask { for await _ in changes { break } } }
                await group.next()
                group.cancelAll()
            }
        }
    }
}
