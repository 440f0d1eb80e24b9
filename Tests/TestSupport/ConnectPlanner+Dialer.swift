package import Model
package import SystemIO
import Tunnels

extension ConnectPlanner {
    /// Dials with a relay that all tests of the process share.
    package func dial(_ route: Route) async throws -> Connection {
        try await RelayDialer(self, relay: sharedRelay).dial(route)
    }
}

extension NetworkPlanner: Dialer {}

/// A planner with one plan for every route.
package struct FixedPlanner: ConnectPlanner {
    private let plan: ConnectPlan

    package init(_ plan: ConnectPlan) { self.plan = plan }

    package func plan(for route: Route) -> ConnectPlan { plan }
}

private let sharedRelay = Relay()
