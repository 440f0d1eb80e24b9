package import Model
package import SystemIO

/// Finds the ways to open streams to the targets of tunnels.
package protocol TargetPlanner: Sendable {
    /// The sentence for a connection that ended with an error, such as "the target connection failed".
    var failureSentence: String { get }

    /// Checks whether a target can be reached now, without a connection to it.
    ///
    /// - Parameters:
    ///   - target: The target of a tunnel or a stream.
    ///   - owner: The client that created the tunnel or the stream.
    /// - Returns: The facts for later connections.
    /// - Throws: The reason why the target cannot be reached.
    func snapshot(of target: TunnelTarget, for owner: TunnelOwner) async throws(DialError) -> TargetSnapshot
}

/// The client that created a tunnel or a stream.
package struct TunnelOwner: Hashable, Sendable {
    /// The UID of the client; nil if the kernel reports none.
    package let user: UInt32?
    /// The key of the client as a holder of leases; nil for the commands of a user.
    package let holder: String?

    package init(user: UInt32?, holder: String?) {
        (self.user, self.holder) = (user, holder)
    }
}

/// Plans the routes of a tunnel's target.
package struct RoutePlanner: TargetPlanner {
    private let resolver: any RouteResolver
    private let planner: any ConnectPlanner

    package init(resolver: any RouteResolver, planner: any ConnectPlanner) {
        (self.resolver, self.planner) = (resolver, planner)
    }

    package var failureSentence: String { "the target connection failed" }

    package func snapshot(
        of target: TunnelTarget,
        for owner: TunnelOwner
    ) async throws(DialError) -> TargetSnapshot {
        let resolved = try await resolver.resolve(target)
        var plans: [ConnectPlan] = []
        for route in resolved.routes {
            do throws(DialError) { plans.append(try await planner.plan(for: route)) } catch {
                plans.append(ConnectPlan(route: route) { throw error })
            }
        }
        guard !plans.isEmpty else { throw Self.noRoute(to: target) }
        var snapshot = TargetSnapshot(plans, refused: resolved.refused, isCurrent: resolved.isCurrent)
        snapshot.allowsTrial = resolved.allowsTrial
        snapshot.absence = resolved.absence
        return snapshot
    }

    /// The error for a target without a route.
    private static func noRoute(to target: TunnelTarget) -> DialError {
        switch target {
        case .endpoint(let id):
            DialError(.noRoute, "\(id) has no route now; start the app, or run `patchbay show \(id)`")
        case .device(let route):
            DialError(.noRoute, "\(route.socket) of \(route.udid) is not reachable now; plug the device in")
        }
    }
}

/// Resolves a tunnel's target to its current routes.
package protocol RouteResolver: Sendable {
    /// Returns the routes, the best one first. A tunnel resolves its target at each change, and when no route of the last
    /// result leads to the target. It therefore follows an app that moves.
    ///
    /// - Throws: `DialError` (`noRoute`, `deviceAbsent`, `usbmuxdAbsent`) if there is no route.
    func resolve(_ target: TunnelTarget) async throws(DialError) -> ResolvedTarget
}

/// The routes to a target, at one time.
package struct ResolvedTarget: Sendable {
    /// The routes, the best one first.
    package let routes: [Route]
    /// The routes that may not be dialed. Their open connections are closed.
    package let refused: [Route]
    /// False if the approval of the routes has changed. Must be fast, because it is called for each connection.
    package let isCurrent: @Sendable () -> Bool
    /// False if a connection that is closed at once may end another one, because the server accepts one client.
    let allowsTrial: @Sendable () async -> Bool
    /// Not nil if the last probes failed.
    let absence: TargetAbsence?

    package init(
        _ routes: [Route],
        refused: [Route] = [],
        isCurrent: @escaping @Sendable () -> Bool = { true },
        allowsTrial: @escaping @Sendable () async -> Bool = { true },
        absence: TargetAbsence? = nil
    ) {
        (self.routes, self.refused) = (routes, refused)
        (self.isCurrent, self.allowsTrial, self.absence) = (isCurrent, allowsTrial, absence)
    }
}

/// The facts about a target whose last probes failed. Each client is connected nevertheless, because the server may have
/// returned since.
package struct TargetAbsence: Sendable {
    /// The time within which the server must accept a client. The client of a dead machine waits no longer.
    static let timeout = Duration.seconds(1)

    /// The error of clients until the server returns.
    let failure: DialError
    /// Called after a connection, which proves the return.
    let returned: @Sendable () async -> Void

    package init(_ failure: DialError, returned: @escaping @Sendable () async -> Void) {
        (self.failure, self.returned) = (failure, returned)
    }
}

/// The facts about a tunnel's target that the event loop needs for a connection. The tunnel table replaces the snapshot
/// when devices, endpoints or approvals change.
package struct TargetSnapshot: Sendable {
    /// The plans for the routes, the best one first; never empty.
    let plans: [ConnectPlan]
    /// The routes that may not be dialed.
    let refused: [Route]
    /// False if the approval of the routes has changed. Called on the loop's thread.
    let isCurrent: @Sendable () -> Bool
    /// Returns the reason for which the policy refuses a connection. Called on the loop's thread.
    var refusal: @Sendable () -> DialError? = { nil }
    /// `ResolvedTarget.allowsTrial`.
    var allowsTrial: @Sendable () async -> Bool = { false }
    /// `ResolvedTarget.absence`.
    var absence: TargetAbsence?
    /// The number of route changes before the snapshot.
    var generation: UInt64 = 0

    package init(
        _ plans: [ConnectPlan],
        refused: [Route] = [],
        isCurrent: @escaping @Sendable () -> Bool = { true }
    ) {
        (self.plans, self.refused) = (plans, refused)
        self.isCurrent = isCurrent
    }
}
