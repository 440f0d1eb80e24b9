package import Model
import Synchronization

/// Counts the open connections per port, so that a port in use is not probed. Some servers accept one client and drop
/// the old one.
package final class RouteUseCounter: Sendable {
    private let counts = Mutex<[RoutePort: Int]>([:])

    /// One open connection; counted until deallocation.
    private final class Use: Sendable {
        private let port: RoutePort
        private let uses: RouteUseCounter
        private let permit: (any Sendable)?

        init(_ port: RoutePort, _ uses: RouteUseCounter, holding permit: (any Sendable)?) {
            (self.port, self.uses, self.permit) = (port, uses, permit)
            uses.counts.withLock { $0[port, default: 0] += 1 }
        }

        deinit {
            uses.counts.withLock { counts in
                let left = counts[port, default: 1] - 1
                counts[port] = left > 0 ? left : nil
            }
        }
    }

    /// True if the port of the route has an open connection.
    package func contains(_ route: Route) -> Bool { counts.withLock { $0[RoutePort(route)] != nil } }

    /// Counts a connection until the returned value, which keeps the permit, is deallocated.
    func begin(_ route: Route, holding permit: (any Sendable)? = nil) -> any Sendable {
        Use(RoutePort(route), self, holding: permit)
    }
}
