import Logging
package import Model
import ServiceLifecycle
import Synchronization

/// Ends grants and invites when they expire, and closes their sessions within one second.
package struct ExpirationService: Service {
    private let store: AccessStore
    private let clock: any Clock<Duration>

    package init(of store: AccessStore, clock: any Clock<Duration> = ContinuousClock()) {
        self.store = store
        self.clock = clock
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let (pause, wakes) = await store.expire()
                await wait(pause, or: wakes)
            }
        }
    }

    /// Waits until the time is over or a wake-up announces an earlier deadline.
    private func wait(_ pause: Duration, or wakes: AsyncStream<Void>) async {
        await withTaskGroup { group in
            group.addTask { try? await clock.sleep(for: pause) }
            group.addTask { for await _ in wakes { break } }
            await group.next()
            group.cancelAll()
        }
    }
}

extension AccessStore {
    /// Check interval while sessions exist. No timer fires when the wall clock is set forward, so the store polls.
    private static let sessionCheckInterval: Duration = .milliseconds(500)

    /// Ends expired grants and invites, and closes their sessions.
    ///
    /// - Returns: Time until the next check, and a stream that asks for an earlier one.
    func expire() async -> (pause: Duration, wakes: AsyncStream<Void>) {
        // Created first, so that no wake-up between the check and the wait is missed.
        let wakes = makeWakes()
        let now = now()
        do {
            if let change = state.expire(at: now) { try await endAndCommit(change) }
            try saveIfDue(at: now)
        } catch {
            logger.error("expired grants could not be saved; retrying", metadata: ["error": "\(error)"])
        }
        var limit = sharedState.withLock { $0.sessions.updatePolling() } ? Self.sessionCheckInterval : Self.saveInterval
        // After a failed write, the retry is delayed.
        if let due = auditFlushDelay(at: self.now()) { limit = min(limit, max(due, Self.sessionCheckInterval)) }
        let pause = state.deadline.map { min(max($0 - self.now(), .milliseconds(1)), limit) }
        return (pause ?? limit, wakes)
    }

    /// Restarts the logical clock at the wall clock, after an administrator has corrected the wall clock.
    ///
    /// Needed when the wall clock was ahead, for example by ten years. Ends everything that has expired by now, so that
    /// nothing is revived. Also ends what was created in the future, because such grants would live too long.
    ///
    /// - Returns: IDs of the ended invites and grants.
    @discardableResult
    package func recoverClock(by caller: AuditActor, from source: RequestSource) async throws -> [String] {
        if let change = state.expire(at: now()) { try await endAndCommit(change) }
        let reading = reading()
        var change = sharedState.withLock { shared in
            shared.clock.restart(at: reading)
            return shared.state.endFuture(at: shared.clock.now)
        }
        let now = now()
        attemptLimiter.clockWasSet(to: now)
        requestQueue.clockWasSet(to: now)
        userCodeLimiter.clockWasSet(to: now)
        var event = AuditEvent(.clockRecovered, by: caller, from: source)
        let ended = (change.invites.map(\.id) + change.endedGrants).sorted()
        event.ended = ended
        change.events = [event]
        try await endAndCommit(change)
        try saveUserCodeLimiter()
        return ended
    }
}
