import Model
import Synchronization
import SystemIO

/// Ends what waits for a host when the entries of the host end.
///
/// A host that hangs, or has lost its network, keeps its connections. Its entries end 10 s after its last sign of life, which
/// is earlier than the time limits of most requests.
final class HostPresence: Sendable {
    private struct State {
        var actions: [HostName: [UInt64: @Sendable () -> Void]] = [:]
        var lastNumber: UInt64 = 0
    }

    /// A registered action, until it is cancelled.
    struct Registration: Sendable {
        fileprivate let host: HostName
        fileprivate let number: UInt64
    }

    private let state = Mutex(State())

    /// Runs the actions of a host whose entries have ended, each once.
    func reportEnd(of host: HostName) {
        let actions = state.withLock { $0.actions.removeValue(forKey: host) ?? [:] }
        for action in actions.values { action() }
    }

    /// Registers an action for the end of a host's entries.
    func onEnd(of host: HostName, _ action: @escaping @Sendable () -> Void) -> Registration {
        state.withLock { state in
            state.lastNumber += 1
            state.actions[host, default: [:]][state.lastNumber] = action
            return Registration(host: host, number: state.lastNumber)
        }
    }

    func cancel(_ registration: Registration) {
        state.withLock { state in
            state.actions[registration.host]?[registration.number] = nil
            if state.actions[registration.host]?.isEmpty == true { state.actions[registration.host] = nil }
        }
    }

    /// Runs a request to a host.
    ///
    /// - Returns: The result; nil if the entries of the host ended first. The request has then been cancelled.
    func whilePresent<Value: Sendable>(
        _ host: HostName,
        _ request: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let end = Promise<Void>()
        let registration = onEnd(of: host) { end.complete(.success(())) }
        defer { cancel(registration) }
        return try await withCancellation(when: { try await end.value() }, request)
    }
}
