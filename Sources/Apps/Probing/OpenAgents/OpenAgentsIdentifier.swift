package import Logging
package import Model
package import Registry
import ServiceLifecycle
import Synchronization
import SystemIO

/// Identifies each OpenAgents server when it comes online at an approved address, and reports its name to the registry.
package final class OpenAgentsIdentifier: Service {
    /// The pauses after a failed attempt, from the first to the longest one.
    private static let pauses = (first: Duration.seconds(2), longest: Duration.seconds(60))

    private let registry: EndpointRegistry
    private let probe: OpenAgentsProbe
    private let clock: any Clock<Duration>
    private let logger: Logger
    /// The endpoints that are identified, or are being identified, since they came online.
    private let known = Mutex<Set<EndpointID>>([])

    package init(
        registry: EndpointRegistry,
        probe: OpenAgentsProbe,
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) {
        self.registry = registry
        self.probe = probe
        self.clock = clock
        self.logger = logger
    }

    /// Identifies servers until graceful shutdown or cancellation.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                await registry.follow { for endpoint in $0.endpoints { follow(endpoint, in: &group) } }
            }
        }
    }

    /// Asks a server for its name now.
    ///
    /// - Throws: `DialError` if the server is not an OpenAgents server or cannot be asked; `CancellationError`.
    package func identify(_ endpoint: Endpoint) async throws {
        guard endpoint.kind == .openagents, let route = endpoint.approvedRoutes.first?.route else { return }
        let identity = try await probe.identify(route)
        guard let name = identity.name, !name.isEmpty else { return }
        if let expected = endpoint.server, expected != name {
            await registry.setMismatch(name, on: route, of: endpoint.id)
        } else {
            await registry.setServer(name, version: identity.version, of: endpoint.id)
        }
    }

    private func follow(_ endpoint: Endpoint, in group: inout DiscardingTaskGroup) {
        guard endpoint.kind == .openagents else { return }
        guard endpoint.state == .online, !endpoint.approvedRoutes.isEmpty else {
            known.withLock { _ = $0.remove(endpoint.id) }
            return
        }
        guard known.withLock({ $0.insert(endpoint.id).inserted }) else { return }
        group.addTask { [self] in await identifyUntilDone(endpoint.id) }
    }

    private func identifyUntilDone(_ id: EndpointID) async {
        var backoff = Backoff(from: Self.pauses.first, to: Self.pauses.longest)
        while known.withLock({ $0.contains(id) }), let endpoint = try? await registry.endpoint(id) {
            do { return try await identify(endpoint) } catch {
                guard !Task.isCancelled else { return }
                logger.notice(
                    "an OpenAgents server could not be identified",
                    metadata: ["id": "\(id)", "reason": "\(error)"]
                )
            }
            do { try await backoff.wait(clock: clock) } catch { return }
        }
    }
}
