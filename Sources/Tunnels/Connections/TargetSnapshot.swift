package import Model
package import SystemIO

/// The facts about a tunnel's target that the event loop needs for a connection. The tunnel table replaces the snapshot
/// when devices, endpoints or approvals change.
package struct TargetSnapshot: Sendable {
    /// The plan for the best route; nil if only `TargetDialer.dial` can open a stream.
    let plan: ConnectPlan?
    /// True if there are routes besides that of the plan.
    let hasOtherRoutes: Bool
    /// False if the approval of the routes has changed. Called on the loop's thread.
    let isCurrent: @Sendable () -> Bool
    /// Returns the reason for which the policy refuses a connection. Called on the loop's thread.
    var refusal: @Sendable () -> DialError? = { nil }

    package init(
        plan: ConnectPlan? = nil,
        hasOtherRoutes: Bool = false,
        isCurrent: @escaping @Sendable () -> Bool = { true }
    ) {
        self.plan = plan
        self.hasOtherRoutes = hasOtherRoutes
        self.isCurrent = isCurrent
    }
}

/// The routes to a target, at one time.
package struct ResolvedTarget: Sendable {
    /// The routes, the best one first.
    package let routes: [Route]
    /// False if the approval of the routes has changed. Must be fast, because it is called for each connection.
    package let isCurrent: @Sendable () -> Bool

    package init(_ routes: [Route], isCurrent: @escaping @Sendable () -> Bool = { true }) {
        self.routes = routes
        self.isCurrent = isCurrent
    }
}

/// A dial on a task, for a connection of the event loop. The loop asks for it when a connection has no plan, or when the
/// plan failed.
final class DialRequest: Sendable {
    /// The connection in the event loop.
    let token: ConnectionToken
    /// True if the connection had a plan that failed.
    let hadPlan: Bool
    private let abandoned = Promise<Void>()

    init(token: ConnectionToken, hadPlan: Bool) {
        self.token = token
        self.hadPlan = hadPlan
    }

    /// Ends the dial, because the client is gone.
    func abandon() { abandoned.complete(.success(())) }

    /// Runs `body` until it returns or the dial is abandoned.
    func run(_ body: @escaping @Sendable () async -> Void) async {
        await withDiscardingTaskGroup { group in
            group.addTask { [abandoned] in
                await body()
                abandoned.complete(.success(()))
            }
            _ = try? await abandoned.value()
            group.cancelAll()
        }
    }
}
