import Model
import Synchronization

/// Which ports of phones streams stand to.
final class RouteUses: Sendable {
    private let counts = Mutex<[USBRoute: Int]>([:])

    /// One stream, until the last reference goes.
    private final class Use: Sendable {
        private let route: USBRoute
        private let uses: RouteUses

        init(_ route: USBRoute, _ uses: RouteUses) {
            (self.route, self.uses) = (route, uses)
            uses.counts.withLock { $0[route, default: 0] += 1 }
        }

        deinit {
            uses.counts.withLock { counts in
                let left = counts[route, default: 1] - 1
                counts[route] = left > 0 ? left : nil
            }
        }
    }

    func contains(_ route: USBRoute) -> Bool { counts.withLock { $0[route] != nil } }

    func begin(_ route: USBRoute) -> any Sendable { Use(route, self) }
}
