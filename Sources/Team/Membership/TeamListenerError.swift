import Model
import Synchronization

/// The reason why the team listener does not listen, for `patchbay team` and `patchbay doctor`.
package final class TeamListenerError: Sendable {
    private let error = Mutex<(any Error)?>(nil)

    /// Nil if the listener is open, or has not started yet.
    var problem: Problem? {
        error.withLock { $0 }.map {
            Problem(
                .unavailable,
                "other hosts cannot reach this one: \($0)",
                hint: "set another team.listen, then sudo systemctl restart patchbayd"
            )
        }
    }

    package func set(_ new: (any Error)?) { error.withLock { $0 = new } }
}
