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
                let (pause, wakes) = await expire()
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

extension ExpirationService {
    /// Check interval while sessions exist. No timer fires when the wall clock is set forward, so the store polls.
    private static let sessionCheckInterval: Duration = .milliseconds(500)

    /// Ends expired grants and invites, and closes their sessions.
    ///
    /// - Returns: Time until the next check, and a stream that asks for an earlier one.
    func expire() async -> (pause: Duration, wakes: AsyncStream<Void>) {
        await store.transaction { store in
            // Created first, so that no wake-up between the check and the wait is missed.
            let wakes = store.makeWakes()
            let now = store.now()
            do {
                if let change = store.state.expire(at: now) { try await store.endAndCommit(change) }
                try store.saveIfDue(at: now)
            } catch {
                store.logger.error(
                    "expired grants could not be saved; retrying",
                    metadata: ["error": "\(error)"]
                )
            }
            let isPolled = store.live.content.withLock { $0.sessions.updatePolling() }
            var limit = isPolled ? Self.sessionCheckInterval : AccessStore.saveInterval
            // After a failed write, the retry is delayed.
            if let due = store.auditFlushDelay(at: store.now()) {
                limit = min(limit, max(due, Self.sessionCheckInterval))
            }
            let pause = store.state.deadline.map { min(max($0 - store.now(), .milliseconds(1)), limit) }
            return (pause ?? limit, wakes)
        }
    }

    /// Restarts the logical clock at the wall clock, after an administrator has corrected the wall clock.
    ///
    /// Needed when the wall clock was ahead, for example by ten years. Ends everything that has expired by now, so that
    /// nothing is revived. Also ends what was created in the future, because such grants would live too long.
    ///
    /// - Returns: IDs of the ended invites and grants.
    @discardableResult
    package func recoverClock(by caller: AuditActor, from source: RequestSource) async throws -> [String] {
        try await store.transaction { store in
            if let change = store.state.expire(at: store.now()) { try await store.endAndCommit(change) }
            let reading = store.reading()
            var change = store.live.content.withLock { content in
                content.clock.restart(at: reading)
                return content.state.endFuture(at: content.clock.now)
            }
            let now = store.now()
            store.attemptLimiter.clockWasSet(to: now)
            store.requestQueue.clockWasSet(to: now)
            store.dashboardCodes.clockWasSet(to: now)
            store.authorizations = OAuthAuthorizations()
            store.userCodeLimiter.clockWasSet(to: now)
            let ended = change.endedIDs
            change.events = [AuditEvent(.clockRecovered, by: caller, from: source, ended: ended)]
            try await store.endAndCommit(change)
            try store.saveUserCodeLimiter()
            return ended
        }
    }
}
