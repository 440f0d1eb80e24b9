package import Model
package import Registry
import ServiceLifecycle

/// Tells the launch watcher which routes to watch, and tells the other parts when a watched launch has ended.
package struct LaunchFollower: Service {
    private let registry: EndpointRegistry
    private let watcher: LaunchWatcher
    private let scanner: DevicePortScanner?
    private let prober: LivenessProber
    private let kindsWithSessions: Set<EndpointKind>
    private let endLaunch: @Sendable (EndpointID) async -> Void

    /// - Parameters:
    ///   - registry: The registry.
    ///   - watcher: Watches the routes.
    ///   - scanner: Scans the ports of phones; nil if devices are disabled in the configuration.
    ///   - prober: Probes endpoints whose launch has ended.
    ///   - kindsWithSessions: The kinds whose servers give the broker a session or exchange a secret.
    ///   - endLaunch: Ends the session with the launch of an endpoint.
    package init(
        registry: EndpointRegistry,
        watcher: LaunchWatcher,
        scanner: DevicePortScanner?,
        prober: LivenessProber,
        kindsWithSessions: Set<EndpointKind>,
        endLaunch: @escaping @Sendable (EndpointID) async -> Void
    ) {
        self.registry = registry
        self.watcher = watcher
        self.scanner = scanner
        self.prober = prober
        self.kindsWithSessions = kindsWithSessions
        self.endLaunch = endLaunch
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                let (additions, continuation) = AsyncStream.makeStream(of: EndpointID.self)
                group.addTask { await registry.follow { follow($0, additions: continuation) } }
                group.addTask { for await id in additions { await verifyOlder(than: id) } }
                group.addTask { for await route in watcher.endings { await handleEnd(of: route) } }
            }
        }
    }

    private func follow(_ update: EndpointUpdate, additions: AsyncStream<EndpointID>.Continuation) {
        update.endpoints.forEach(watch)
        guard case .change(let change) = update else { return }
        if change.kind == .removed { watcher.set([], of: change.endpoint.id) }
        if change.kind == .added { additions.yield(change.endpoint.id) }
    }

    private func watch(_ endpoint: Endpoint) { watcher.set(Set(watchedRoutes(of: endpoint)), of: endpoint.id) }

    /// Returns the approved routes whose launch matters: those of every AppReveal and app-debug server. Another
    /// server counts if it has a secret or a session of the broker.
    private func watchedRoutes(of endpoint: Endpoint) -> [Route] {
        guard endpoint.state == .online || endpoint.state == .suspect, ![.dartVM, .web].contains(endpoint.kind) else {
            return []
        }
        let routes = endpoint.approvedRoutes.filter { !$0.route.isInbound }
        let isAlwaysWatched = endpoint.kind.acceptsManyClients || kindsWithSessions.contains(endpoint.kind)
        // One route shows the end of the launch. A secret needs an observation of each route that it is for.
        return (isAlwaysWatched ? routes.prefix(1).map(\.route) : []) + routes.filter(\.isSecretHeld).map(\.route)
    }

    /// Verifies an endpoint of which a new one may be a relaunch. If its server has ended, the registry joins both.
    private func verifyOlder(than id: EndpointID) async {
        guard let older = await registry.older(than: id), let endpoint = try? await registry.endpoint(older) else {
            return
        }
        await prober.probe(endpoint)
    }

    private func handleEnd(of route: Route) async {
        let port = RoutePort(route)
        for endpoint in await registry.endpoints
        where endpoint.routes.contains(where: { RoutePort($0.route) == port }) {
            await endLaunch(endpoint.id)
            if route.isNetwork { await prober.probe(endpoint) }
        }
        if case .usb(let usb) = route { await scanner?.recheck(usb) }
    }
}
