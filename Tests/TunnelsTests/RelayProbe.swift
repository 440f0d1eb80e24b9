import Synchronization
import SystemIO
import TestSupport
import Tunnels

/// An observer that records byte counts and outcomes.
final class RelayProbe: RelayObserver {
    private struct State {
        var up = 0
        var down = 0
        var outcomes: [RelayOutcome] = []
    }

    private let state = Mutex(State())

    var up: Int { state.withLock { $0.up } }
    var down: Int { state.withLock { $0.down } }
    var outcomes: [RelayOutcome] { state.withLock { $0.outcomes } }

    func relayed(up: Int, down: Int, at now: MonotonicInstant) {
        state.withLock { state in
            state.up += up
            state.down += down
        }
    }

    func ended(_ outcome: RelayOutcome) { state.withLock { $0.outcomes.append(outcome) } }

    /// Waits for the first outcome.
    func outcome() async throws -> RelayOutcome { try await eventually("the relay has ended") { outcomes.first } }

    /// Waits until no byte has moved for 60 ms, so that the kernel buffers of both sides are full.
    func standstill() async throws {
        var last = -1
        while last != up + down || last == 0 {
            last = up + down
            try await Task.sleep(for: .milliseconds(60))
        }
    }
}
