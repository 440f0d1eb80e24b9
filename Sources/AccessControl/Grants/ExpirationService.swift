import Logging
package import Model
import ServiceLifecycle
import Synchronization

/// Ends grants and invites when their time has come, and cuts what lives under them within a second.
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
                let (pause, wakes) = await store.sweep()
                await wait(pause, or: wakes)
            }
        }
    }

    /// Until the time is over or there may be something earlier to end.
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
    /// How often to look while something lives under a grant: a wall clock that is set forward wakes nobody.
    private static let watchfulPause: Duration = .milliseconds(500)

    /// Ends and cuts what has had its time.
    ///
    /// - Returns: After what time to look again, and what tells that it should be sooner.
    func sweep() async -> (pause: Duration, wakes: AsyncStream<Void>) {
        // Before anything is looked at, so that nothing between now and the waiting is missed.
        let wakes = makeWakes()
        let now = now()
        do {
            if let change = ledger.sweep(at: now) { try await close(by: change) }
            try saveIfDue(at: now)
        } catch {
            logger.error("what expired could not be saved; trying again", metadata: ["error": "\(error)"])
        }
        var limit = books.withLock { $0.uses.watch() } ? Self.watchfulPause : Self.savePause
        // Where they could not be written, the next try is not at once.
        if let due = noteDeadline(at: self.now()) { limit = min(limit, max(due, Self.watchfulPause)) }
        let pause = ledger.deadline.map { min(max($0 - self.now(), .milliseconds(1)), limit) }
        return (pause ?? limit, wakes)
    }

    /// Goes back to the wall clock after a person has set it right: for the day when it was ten years ahead.
    ///
    /// Ends for good what has expired until now, so that nothing comes back to life, and what was made in the time that
    /// never was, so that nothing lives ten years.
    ///
    /// - Returns: The ids of the invites and grants that ended by that.
    @discardableResult
    package func recoverClock(by caller: AuditActor, from origin: RequestSource) async throws -> [String] {
        if let change = ledger.sweep(at: now()) { try await close(by: change) }
        let reading = reading()
        var change = books.withLock { books in
            books.clock.restart(at: reading)
            return books.ledger.endFuture(at: books.clock.now)
        }
        let now = now()
        limiter.clockWasSet(to: now)
        desk.clockWasSet(to: now)
        gate.clockWasSet(to: now)
        var event = AuditEvent(.clockRecovered, by: caller, from: origin)
        let ended = (change.invites.map(\.id) + change.endedGrants).sorted()
        event.ended = ended
        change.events = [event]
        try await close(by: change)
        try keepGate()
        return ended
    }
}
