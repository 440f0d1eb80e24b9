import Model
import Synchronization
import SystemIO

@testable import Team

/// A team's registry in the memory of one process, for tests. A single host needs no team, and no store.
///
/// A lease that is over ends at the next call, or with `expireLeases()`.
final class InMemoryTeamStore: TeamStore {
    /// The number of revisions that are kept for watchers. Older ones are compacted.
    static let historyLimit = 10_000

    private let state = Mutex(InMemoryTeamState())
    private let timer: ElapsedTimer

    /// - Parameter clock: The clock of the leases.
    init(clock: any Clock<Duration> = ContinuousClock()) { timer = ElapsedTimer(clock) }

    /// False makes every call and every stream fail with `TeamStoreError.unreachable`. Leases end meanwhile.
    var isReachable: Bool {
        get { state.withLock { $0.isReachable } }
        set {
            let watchers = state.withLock { state in
                state.isReachable = newValue
                return newValue ? [] : state.takeWatchers()
            }
            for watcher in watchers { watcher.finish(throwing: Self.unreachable) }
        }
    }

    /// The current revision. Grants and renewals of leases do not change it.
    var revision: Int64 { state.withLock { $0.revision } }

    /// Ends the leases that are over.
    func expireLeases() { state.withLock { $0.expireLeases(at: timer.elapsed) } }

    /// Deletes the history up to the current revision.
    func compact() { state.withLock { $0.compact(keeping: 0) } }

    /// Ends all streams with an error, as a lost connection does.
    func breakStreams() {
        for watcher in state.withLock({ $0.takeWatchers() }) { watcher.finish(throwing: Self.unreachable) }
    }

    func list(_ prefix: String) async throws(TeamStoreError) -> TeamStoreList {
        try perform { state throws(TeamStoreError) in state.list(prefix) }
    }

    func changes(
        of prefix: String,
        after revision: Int64
    ) -> AsyncThrowingStream<TeamStoreChanges, any Error> {
        let (stream, watcher) = AsyncThrowingStream.makeStream(of: TeamStoreChanges.self)
        do {
            // The next change removes a watcher that has ended. `onTermination` must not wait for the lock, which is held
            // while changes are sent.
            try perform { state throws(TeamStoreError) in try state.watch(prefix, after: revision, watcher) }
        } catch { watcher.finish(throwing: error) }
        return stream
    }

    func write(
        _ writes: [TeamStoreWrite],
        if condition: TeamStoreCondition?
    ) async throws(TeamStoreError) -> Bool {
        try perform { state throws(TeamStoreError) in try state.write(writes, if: condition) }
    }

    func grantSessionLease(timeToLive: Duration) async throws(TeamStoreError) -> SessionLease.ID {
        try perform { state throws(TeamStoreError) in state.grantSessionLease(timeToLive, at: timer.elapsed) }
    }

    func renewSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        try perform { state throws(TeamStoreError) in try state.renewSessionLease(id, at: timer.elapsed) }
    }

    func revokeSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        try perform { state throws(TeamStoreError) in state.endLease(id) }
    }

    private static let unreachable = TeamStoreError.unreachable(reason: "the registry in memory is switched off")

    private func perform<Value: Sendable>(
        _ body: (inout InMemoryTeamState) throws(TeamStoreError) -> Value
    ) throws(TeamStoreError) -> Value {
        let now = timer.elapsed
        return try state.withLock { state throws(TeamStoreError) in
            state.expireLeases(at: now)
            guard state.isReachable else { throw Self.unreachable }
            return try body(&state)
        }
    }
}
