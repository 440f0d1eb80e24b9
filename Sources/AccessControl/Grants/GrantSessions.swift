/// A tunnel or a stream that lives under a grant.
package struct GrantSession: Hashable, Sendable {
    /// The session in which this task runs. A revocation from inside this task does not wait for this session, which
    /// would be a deadlock.
    @TaskLocal static var current: GrantSession?

    package let grant: String
    let number: UInt64
}

/// All sessions under grants, and how to close them.
///
/// Part of `InMemoryAccessState`. Under its lock, checking a grant and registering a session are one step, and so are
/// ending a grant and removing its sessions. No session can be registered in between.
struct GrantSessions: Sendable {
    struct Cancellation: Sendable {
        let session: GrantSession
        /// Asks the session to end; returns immediately.
        let signal: @Sendable () -> Void
        /// Closes the session; returns when no more bytes are relayed.
        let finish: @Sendable () async -> Void
    }

    private var cancellations: [String: [UInt64: Cancellation]] = [:]
    private var lastNumber: UInt64 = 0
    private(set) var count = 0
    /// True while `ExpirationService` checks at the short interval.
    private(set) var isPolled = false
    private var hadRegistrations = false

    mutating func register(
        under grant: String,
        signal: @escaping @Sendable () -> Void,
        finish: @escaping @Sendable () async -> Void
    ) -> GrantSession {
        lastNumber += 1
        let session = GrantSession(grant: grant, number: lastNumber)
        cancellations[grant, default: [:]][lastNumber] = Cancellation(session: session, signal: signal, finish: finish)
        count += 1
        hadRegistrations = true
        return session
    }

    /// Returns whether sessions exist or were registered since the last call. If so, the service checks again at the
    /// short interval.
    ///
    /// Counts past registrations too; otherwise each of many short sessions would wake the service.
    mutating func updatePolling() -> Bool {
        isPolled = count > 0 || hadRegistrations
        hadRegistrations = false
        return isPolled
    }

    mutating func remove(_ session: GrantSession) {
        guard cancellations[session.grant]?.removeValue(forKey: session.number) != nil else { return }
        count -= 1
        if cancellations[session.grant]?.isEmpty == true { cancellations[session.grant] = nil }
    }

    /// Removes the sessions of grants and returns their cancellations.
    mutating func removeAll(of grants: some Sequence<String>) -> [Cancellation] {
        let removed = grants.flatMap { cancellations.removeValue(forKey: $0).map { Array($0.values) } ?? [] }
        count -= removed.count
        return removed
    }

    /// Runs all cancellations at once. Returns when each session has ended, except the one that this task runs in.
    static func cancel(_ cancellations: [Cancellation]) async {
        for cancellation in cancellations { cancellation.signal() }
        await withDiscardingTaskGroup { group in
            for cancellation in cancellations where cancellation.session != GrantSession.current {
                group.addTask { await cancellation.finish() }
            }
        }
    }
}
