import Glibc
package import Model
import Synchronization
package import SystemIO

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

/// Says by which routes a tunnel's target is reached now.
package protocol RouteResolver: Sendable {
    /// The best first. Asked anew for each connection, so that a tunnel follows an app that moves.
    ///
    /// - Throws: `DialError` (`noRoute`, `deviceAbsent`, `usbmuxdAbsent`) when there is none.
    func routes(to target: TunnelTarget) async throws(DialError) -> [Route]
}

/// Where a dial leaves its carrier: a noncopyable value cannot be a child task's result.
///
/// A carrier that nobody takes out is closed with the slot.
package final class PendingDial: Sendable {
    private enum Ending: Sendable {
        case dialled(DialError?)
        case clientLeft
        case clientStays
    }

    private let content = Mutex<Connection?>(nil)

    package init() {}

    package var isFilled: Bool { content.withLock { $0 != nil } }

    package func put(_ carrier: consuming Connection) {
        var carrier = Optional(carrier)
        content.withLock { $0 = carrier.take() }
    }

    package func take() -> Connection? { content.withLock { $0.take() } }

    /// Dials for a client that waits: leaves a carrier here, unless the dial fails, the client goes away meanwhile, or the
    /// task is cancelled. Nothing is read from the client.
    ///
    /// - Returns: Why the dial failed; nil where there is a carrier, or nobody who could be told.
    package func fill(
        for client: CInt,
        _ dial: @escaping @Sendable () async throws -> Connection
    ) async -> DialError? {
        await withTaskGroup(of: Ending.self) { group in
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
                guard (try? await Poller.shared.wait(for: .hungUp, of: client)) != nil else { return .clientStays }
                // Gone, but what it sent before is still to be delivered: a unix client may write and close at once.
                var byte: UInt8 = 0
                return recv(client, &byte, 1, CInt(MSG_PEEK)) > 0 ? .clientStays : .clientLeft
            }
            defer { group.cancelAll() }
            for await ending in group {
                switch ending {
                case .dialled(let failure): return failure
                case .clientLeft: return nil
                case .clientStays: continue
                }
            }
            return nil
        }
    }
}
