import Synchronization

/// One thing that lives under a grant: a tunnel, a stream.
package struct GrantSession: Hashable, Sendable {
    /// The use inside which this task runs, if it does: ending that one is not waited for, it would wait for itself.
    @TaskLocal static var current: GrantSession?

    package let grant: String
    let number: UInt64
}

/// Everything that lives under grants now, and how to cut it.
///
/// Belongs to the store, which opens a use in the same step in which it looks whether the grant still counts, and takes the
/// uses of a grant away in the same step in which it ends it: no use can come between the two.
struct GrantSessions: Sendable {
    struct Cut: Sendable {
        let use: GrantSession
        /// Tells it to end; returns at once.
        let signal: @Sendable () -> Void
        /// Ends it; when this returns, not one more byte passes.
        let finish: @Sendable () async -> Void
    }

    private var cuts: [String: [UInt64: Cut]] = [:]
    private var last: UInt64 = 0
    private(set) var count = 0
    /// Somebody looks again soon whether grants still count.
    private(set) var isWatched = false
    private var hasNews = false

    mutating func open(
        of grant: String,
        signal: @escaping @Sendable () -> Void,
        finish: @escaping @Sendable () async -> Void
    ) -> GrantSession {
        last += 1
        let use = GrantSession(grant: grant, number: last)
        cuts[grant, default: [:]][last] = Cut(use: use, signal: signal, finish: finish)
        count += 1
        hasNews = true
        return use
    }

    /// Whoever is told by this that something lives here, or did since the last time, looks again soon.
    ///
    /// Not only for what lives now: short uses that come one after the other would have to wake it for each.
    mutating func watch() -> Bool {
        isWatched = count > 0 || hasNews
        hasNews = false
        return isWatched
    }

    mutating func close(_ use: GrantSession) {
        guard cuts[use.grant]?.removeValue(forKey: use.number) != nil else { return }
        count -= 1
        if cuts[use.grant]?.isEmpty == true { cuts[use.grant] = nil }
    }

    /// Takes the uses of these grants away, to be cut.
    mutating func take(_ grants: some Sequence<String>) -> [Cut] {
        let taken = grants.flatMap { cuts.removeValue(forKey: $0).map { Array($0.values) } ?? [] }
        count -= taken.count
        return taken
    }

    /// Cuts all of them at once; returns when each has ended, but for the one that this runs in.
    static func end(_ cuts: [Cut]) async {
        for cut in cuts { cut.signal() }
        await withDiscardingTaskGroup { group in
            for cut in cuts where cut.use != GrantSession.current { group.addTask { await cut.finish() } }
        }
    }
}

/// The end of something, for those who must not go on before it.
///
/// Waiting is not given up when the waiting task is cancelled: whoever revokes a grant may be cut off himself, and what
/// hangs on the grant must be over all the same.
final class Ending: Sendable {
    private struct State {
        var isOver = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.waiting.append(continuation) }
                return state.isOver
            }
            if isOver { continuation.resume() }
        }
    }

    func finish() {
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
