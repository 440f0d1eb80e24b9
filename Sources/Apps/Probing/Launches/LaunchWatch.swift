import Model
import Synchronization
import SystemIO

/// Watches one launch of a server by idle connections, which end with the server's process.
final class LaunchWatch: Sendable {
    private struct State {
        var schedule: LaunchWatchSchedule
        /// The connections in the order of the schedule.
        var connections: [IdleConnection]
        var isStopped = false
    }

    /// The pause after bytes from a server, so that one that sends often costs little.
    private static let activityPause = Duration.milliseconds(100)

    let route: Route
    private let dialer: any Dialer
    private let timer = ElapsedTimer(PollerClock())
    private let state: Mutex<State>

    /// - Parameters:
    ///   - route: The server.
    ///   - dialer: Opens further connections.
    ///   - first: A connection to the server.
    init(_ route: Route, dialer: any Dialer, first: consuming Connection) {
        self.route = route
        self.dialer = dialer
        state = Mutex(State(schedule: LaunchWatchSchedule(at: .zero), connections: [IdleConnection(first)]))
    }

    /// The time since the watch began.
    var age: Duration { timer.elapsed }

    /// Returns whether the launch still runs: at least one connection is open.
    func isUnbroken() async -> Bool {
        guard let newest = state.withLock({ $0.connections.last(where: \.isOpen) }) else { return false }
        // The kernel of this host closes a local connection with its process.
        return route.isNetwork && !route.isLoopback ? await newest.isAcknowledged() : true
    }

    /// Makes `hold` return.
    func stop() {
        let connections = state.withLock { state in
            state.isStopped = true
            return state.connections
        }
        for connection in connections { connection.interrupt() }
    }

    /// Keeps connections open until the server has closed all of them, or `stop` is called.
    ///
    /// - Throws: `CancellationError`; the errors of `Poller.wait`.
    func hold() async throws {
        while let (oldest, next) = step() {
            if try await oldest.waitForActivity(atMost: next.map { $0 - timer.elapsed }) {
                // A server may send something and keep the connection open.
                if oldest.isOpen { try await PollerClock().sleep(for: Self.activityPause) } else { remove(oldest) }
            } else {
                await extend()
            }
        }
    }

    /// Returns the connection to wait for, and the time at which another connection is due. Nil at the end.
    private func step() -> (IdleConnection, Duration?)? {
        state.withLock { state in
            guard !state.isStopped, let oldest = state.connections.first else { return nil }
            for index in state.schedule.settle(at: timer.elapsed) { state.connections.remove(at: index) }
            return (oldest, [state.schedule.next, state.schedule.settling].compactMap { $0 }.min())
        }
    }

    /// Removes the oldest connection after its end. If another one is open, the server limits idle connections.
    private func remove(_ oldest: IdleConnection) {
        state.withLock { state in
            guard let index = state.connections.firstIndex(where: { $0 === oldest }) else { return }
            state.connections.remove(at: index)
            if state.connections.contains(where: \.isOpen) {
                state.schedule.close(index, at: timer.elapsed)
            } else {
                state.connections = []
            }
        }
    }

    /// Opens the next connection if it is due. A failure changes nothing, because the open connections are the evidence.
    private func extend() async {
        guard let next = state.withLock({ $0.schedule.next }), timer.elapsed >= next else { return }
        guard let connection = try? await dialer.dial(route) else {
            return state.withLock { $0.schedule.postpone(at: timer.elapsed) }
        }
        let idle = IdleConnection(connection)
        state.withLock { state in
            // Without an overlap the new connection may lead to another launch.
            guard !state.isStopped, state.connections.contains(where: \.isOpen) else { return }
            state.connections.append(idle)
            for index in state.schedule.open(at: timer.elapsed) { state.connections.remove(at: index) }
        }
    }
}
