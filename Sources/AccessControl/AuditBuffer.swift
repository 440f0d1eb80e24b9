import Synchronization

/// Lines for the audit log that may wait a moment: put in from any thread without waiting, taken out and written together.
final class AuditBuffer: Sendable {
    private struct State {
        var notes: [AuditEvent] = []
        /// Told when there is something to write, or much.
        var wakeUp: AsyncStream<Void>.Continuation?
    }

    /// With so many of them they are written at once. While the disk takes nothing, four times as many are kept.
    static let plenty = 4_096

    private let state = Mutex(State())

    var notes: [AuditEvent] { state.withLock { $0.notes } }
    var count: Int { state.withLock { $0.notes.count } }

    /// False when there is no room, and the line is lost.
    func add(_ note: AuditEvent) -> Bool {
        let (isKept, wakeUp) = state.withLock { state -> (Bool, AsyncStream<Void>.Continuation?) in
            guard state.notes.count < 4 * Self.plenty else { return (false, nil) }
            state.notes.append(note)
            return (true, state.notes.count == 1 || state.notes.count == Self.plenty ? state.wakeUp : nil)
        }
        wakeUp?.yield()
        return isKept
    }

    /// Takes out the first ones, which are written.
    func remove(first count: Int) { state.withLock { $0.notes.removeFirst(count) } }

    /// Whom to wake from now on.
    func wake(_ wakeUp: AsyncStream<Void>.Continuation) { state.withLock { $0.wakeUp = wakeUp } }
}
