package import Model
package import SystemIO

/// A connect by plan for a task, which then owns the stream.
final class ConnectRequest: Sendable {
    let plan: ConnectPlan
    private let promise = Promise<RelayTarget?>()

    init(_ plan: ConnectPlan) { self.plan = plan }

    /// Waits for the stream; nil if the plan failed.
    func value() async throws -> RelayTarget? { try await promise.value() }

    /// Completes the request. Closes the stream if the task was cancelled.
    func complete(_ result: Result<RelayTarget?, any Error>) {
        if !promise.complete(result) { try? result.get()?.reject() }
    }
}

extension Relay {
    /// Connects by a plan, with the limits of all connections of the relay.
    ///
    /// - Returns: The stream; nil if the plan failed and `Dialer.dial` has to find the reason.
    /// - Throws: `DialError` with the reason; `CancellationError`.
    package func connect(_ plan: ConnectPlan) async throws -> Connection? {
        let request = ConnectRequest(plan)
        connect(request)
        do {
            return try await request.value()?.connection()
        } catch let failure as ConnectPlan.Failure {
            if let reason = await plan.reason?(failure) { throw reason }
            return nil
        } catch {
            abandon(request)
            throw error
        }
    }
}

/// Dials with the connector of a relay, so that all streams of the process share its limits.
package struct RelayDialer: Dialer {
    private let dialer: any Dialer
    private let relay: Relay

    /// - Parameters:
    ///   - dialer: Makes the plans, and dials the routes that have none or whose plan failed.
    ///   - relay: Connects by the plans.
    package init(_ dialer: any Dialer, relay: Relay) { (self.dialer, self.relay) = (dialer, relay) }

    package func dial(_ route: Route) async throws -> Connection {
        if let plan = await dialer.plan(for: route), let stream = try await relay.connect(plan) { return stream }
        return try await dialer.dial(route)
    }

    package func plan(for route: Route) async -> ConnectPlan? { await dialer.plan(for: route) }
}
