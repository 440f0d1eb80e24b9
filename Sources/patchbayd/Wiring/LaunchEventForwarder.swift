import Model
import Apps
import Registry
import ServiceLifecycle

/// Tells the launch watcher which routes to watch, and tells the other parts when a watched launch has ended.
struct LaunchEventForwarder: Service {
    let registry: EndpointRegistry
    let watcher: LaunchWatcher
    /// Nil if devices are disabled in the configuration.
    let scanner: DevicePortScanner?
    let prober: LivenessProber
    /// The kinds whose servers give the broker a session or exchange a secret.
    let kindsWithSessions: Set<EndpointKind>
    /// Ends the session with the launch of an endpoint.
    let endLaunch: @Sendable (EndpointID) async -> Void

    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                let (additions, continuation) = AsyncStream.makeStream(of: EndpointID.self)
                group.addTask { await followRegistry(additions: continuation) }
                group.addTask { for await id in additions { await verifyOlder(than: id) } }
                group.addTask { for await route in watcher.endings { await handleEnd(of: route) } }
            }
        }
    }

    private func followRegistry(additions: AsyncStream<EndpointID>.Continuation) async {
        // The registry ends the stream of a slow subscriber. The next subscription begins with the complete list.
        while !Task.isCancelled {
            let (endpoints, changes) = await registry.changes()
            for endpoint in endpoints { watch(endpoint) }
            for await change in changes {
                if change.kind == .removed { watcher.set([], of: change.endpoint.id) } else { watch(change.endpoint) }
                if change.kind == .added { additions.yield(change.endpoint.id) }
            }
        }
    }

    private func watch(_ endpoint: Endpoint) { watcher.set(Set(watchedRoutes(of: endpoint)), of: endpoint.id) }

    /// Returns the approved routes whose launch matters: of every AppReveal and app-debug server, and of every other
    /// server that has a secret or a session of the broker.
    private func watchedRoutes(of endpoint: Endpoint) -> [Route] {
        guard endpoint.state == .online || endpoint.state == .suspect, endpoint.kind != .dartVM else { return [] }
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
