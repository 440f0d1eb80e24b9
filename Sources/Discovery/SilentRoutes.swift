import Model
import Synchronization

/// Routes that a probe found silent, on their way to the Avahi thread, which asks Avahi again for their services.
///
/// Thread safety: everything is behind one mutex.
final class SilentRoutes: Sendable {
    private let routes = Mutex<Set<Route>>([])

    func add(_ routes: some Sequence<Route>) { self.routes.withLock { $0.formUnion(routes) } }

    func take() -> Set<Route> {
        routes.withLock { routes in
            defer { routes = [] }
            return routes
        }
    }
}
