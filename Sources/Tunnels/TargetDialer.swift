import Model
import SystemIO

/// Opens a stream to a tunnel's target by the first of its routes that works.
struct TargetDialer: Sendable {
    let resolver: any RouteResolver
    let dialer: any Dialer

    /// - Parameters:
    ///   - target: Where to.
    ///   - chosen: Told each route before it is dialled.
    /// - Returns: The stream.
    /// - Throws: `DialError`, with the reason of the best route; `CancellationError`.
    func dial(_ target: TunnelTarget, chosen: @Sendable (Route) -> Void = { _ in }) async throws -> Connection {
        var failures: [DialError] = []
        for route in try await resolver.routes(to: target) {
            chosen(route)
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

    static func noRoute(to target: TunnelTarget) -> DialError {
        switch target {
        case .endpoint(let id):
            DialError(.noRoute, "\(id) has no route now; start the app, or see `patchbay show \(id)`")
        case .device(let udid, let port):
            DialError(.noRoute, "there is no way to port \(port) of \(udid) now; plug the device in")
        }
    }
}
