package import Model
package import SystemIO

/// Opens streams to the targets of tunnels.
package protocol TargetDialer: Sendable {
    /// The sentence for a connection that ended with an error, such as "the target connection failed".
    var failureSentence: String { get }

    /// Checks whether a target can be reached now, without a connection to it.
    ///
    /// - Returns: The facts for later connections.
    /// - Throws: The reason why the target cannot be reached.
    func snapshot(of target: TunnelTarget) async throws(DialError) -> TargetSnapshot

    /// Dials a target.
    ///
    /// - Parameters:
    ///   - target: The target.
    ///   - willDial: Called with each route before it is dialed, if the dialer knows the routes.
    /// - Returns: The stream.
    /// - Throws: `DialError` with the reason of the best route; `CancellationError`.
    func dial(_ target: TunnelTarget, willDial: @Sendable (Route) -> Void) async throws -> Connection
}

/// Dials the routes of a tunnel's target in order and returns the first stream that opens.
struct RouteDialer: TargetDialer {
    let resolver: any RouteResolver
    let dialer: any Dialer

    var failureSentence: String { "the target connection failed" }

    func snapshot(of target: TunnelTarget) async throws(DialError) -> TargetSnapshot {
        let resolved = try await resolver.resolve(target)
        guard let best = resolved.routes.first else { throw Self.noRoute(to: target) }
        return TargetSnapshot(
            plan: await dialer.plan(for: best),
            hasOtherRoutes: resolved.routes.count > 1,
            isCurrent: resolved.isCurrent
        )
    }

    func dial(_ target: TunnelTarget, willDial: @Sendable (Route) -> Void) async throws -> Connection {
        var failures: [DialError] = []
        for route in try await resolver.resolve(target).routes {
            willDial(route)
            do {
                return try await dialer.dial(route)
            } catch let failure as DialError {
                failures.append(failure)
            } catch let error as CancellationError {
                throw error
            } catch {
                failures.append(DialError(.failed, "\(route) could not be reached: \(error)"))
            }
            try Task.checkCancellation()
        }
        guard let first = failures.first else { throw Self.noRoute(to: target) }
        throw DialError(first.reason, failures.map(\.description).joined(separator: "; then "))
    }

    /// The error for a target without a route.
    private static func noRoute(to target: TunnelTarget) -> DialError {
        switch target {
        case .endpoint(let id):
            DialError(.noRoute, "\(id) has no route now; start the app, or run `patchbay show \(id)`")
        case .device(let udid, let port):
            DialError(.noRoute, "port \(port) of \(udid) is not reachable now; plug the device in")
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
