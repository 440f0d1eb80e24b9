package import Model
package import SystemIO

/// Plans a stream to a route with the planner for its transport.
package struct TransportPlanner: ConnectPlanner {
    private let network: any ConnectPlanner
    private let usb: (any ConnectPlanner)?
    private let debugTools: DebugToolServer?
    package let uses = RouteUseCounter()

    /// - Parameters:
    ///   - network: The planner for addresses.
    ///   - usb: The planner for phones; nil if devices are disabled in the configuration.
    ///   - debugTools: The tools of connected apps; nil if the state debugger is disabled in the configuration.
    package init(network: any ConnectPlanner, usb: (any ConnectPlanner)?, debugTools: DebugToolServer?) {
        (self.network, self.usb, self.debugTools) = (network, usb, debugTools)
    }

    /// A planner whose connections are not counted.
    package var uncounted: TransportPlanner { TransportPlanner(network: network, usb: usb, debugTools: debugTools) }

    static let devicesDisabled = DialError(
        .usbmuxdAbsent,
        "devices are disabled; set devices.enabled = true in the configuration"
    )

    static let debugLinkDisabled = DialError(
        .noRoute,
        "the state debugger is disabled; set debuglink.enabled = true in the configuration"
    )

    package func plan(for route: Route) async throws(DialError) -> ConnectPlan {
        switch route {
        case .network(let inbound) where inbound.isInbound:
            guard let debugTools else { throw Self.debugLinkDisabled }
            return ConnectPlan(route: route) { try await debugTools.dial(inbound) }
        case .network:
            // Counted after the connect: attempts to reach a dead machine must not stop the probes that detect it.
            return try await network.plan(for: route).with(retained: { [uses] in uses.begin(route) })
        case .usb:
            guard let usb else { throw Self.devicesDisabled }
            return counted(try await usb.plan(for: route), route)
        }
    }

    /// The port is in use from the beginning of the connect, so that it is not probed at the same time.
    private func counted(_ plan: ConnectPlan, _ route: Route) -> ConnectPlan {
        let acquire = plan.acquirePermit
        var check = plan.listenerCheck
        // A server that accepts one client would drop the open connection.
        if case .connection = check { check = .connection { [uses] in !uses.contains(route) } }
        return plan.with(
            acquirePermit: { [uses] in
                guard let acquire else { return uses.begin(route) }
                return acquire().map { uses.begin(route, holding: $0) }
            },
            listenerCheck: check
        )
    }
}
