import CLinux
import Glibc
package import Model
import Synchronization
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

/// A dial that races with the client's disconnect, and its result.
///
/// A child task cannot return a noncopyable `Connection`, so the task stores the connection here. An unused connection
/// is closed with this object.
package final class PendingDial: Sendable {
    private enum Event: Sendable {
        case dialled(DialError?)
        case clientDisconnected
        case clientConnected
    }

    private let stored = Mutex<Connection?>(nil)

    package init() {}

    /// True if a connection is stored.
    package var isFilled: Bool { stored.withLock { $0 != nil } }

    /// Stores a connection.
    package func put(_ connection: consuming Connection) {
        var connection = Optional(connection)
        stored.withLock { $0 = connection.take() }
    }

    /// Removes and returns the connection.
    package func take() -> Connection? { stored.withLock { $0.take() } }

    /// Dials for a waiting client and stores the connection here. Reads no bytes from the client.
    ///
    /// A client disconnect and a task cancellation both abort the dial.
    ///
    /// - Returns: The reason of a failed dial. Nil if there is a connection, or if the client or the task is gone.
    package func dial(
        for client: CInt,
        _ dial: @escaping @Sendable () async throws -> Connection
    ) async -> DialError? {
        await withTaskGroup(of: Event.self) { group in
            group.addTask { [self] in
                do {
                    put(try await dial())
                    return .dialled(nil)
                } catch let failure as DialError {
                    return .dialled(failure)
                } catch is CancellationError {
                    return .dialled(nil)
                } catch {
                    return .dialled(DialError(.failed, "the target could not be reached: \(error)"))
                }
            }
            group.addTask {
                guard (try? await Poller.shared.wait(for: .hungUp, of: client)) != nil else { return .clientConnected }
                // The client closed. Bytes that it sent before still have to be delivered: a unix client may write and
                // close at once.
                var byte: UInt8 = 0
                return recv(client, &byte, 1, CInt(MSG_PEEK)) > 0 ? .clientConnected : .clientDisconnected
            }
            defer { group.cancelAll() }
            for await event in group {
                switch event {
                case .dialled(let failure): return failure
                case .clientDisconnected: return nil
                case .clientConnected: continue
                }
            }
            return nil
        }
    }
}
