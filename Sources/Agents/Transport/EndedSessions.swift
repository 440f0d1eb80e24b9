import Apps
import Synchronization

/// The sessions that clients have ended with DELETE.
///
/// A session ID is signed and stays valid without a record, so an end needs a record of its own. The set is in memory: a
/// session that ended before a restart of the broker is accepted again. An ID grants no permission.
final class EndedSessions: Sendable {
    /// The maximum number of sessions. Another one replaces the oldest one.
    static let limit = 4_096

    private struct State {
        var sessions: Set<SessionStore.Session> = []
        /// The sessions in the order of their ends; a ring of at most `limit` elements.
        var order: [SessionStore.Session] = []
        var next = 0
    }

    private let state = Mutex(State())

    func insert(_ session: SessionStore.Session) {
        state.withLock { state in
            guard state.sessions.insert(session).inserted else { return }
            if state.order.count < Self.limit {
                state.order.append(session)
            } else {
                state.sessions.remove(state.order[state.next])
                state.order[state.next] = session
                state.next = (state.next + 1) % Self.limit
            }
        }
    }

    func contains(_ session: SessionStore.Session) -> Bool { state.withLock { $0.sessions.contains(session) } }
}
