package import FoundationEssentials
package import Logging
import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// This broker's session in the registry of the team: a session lease, with which all entries of the broker end.
///
/// The session lease is renewed every 3 seconds. The broker treats it as lost 9 seconds after the last successful
/// renewal, one second before the team registry may end it. By then this host has ended its claims, and another host
/// may get them.
package final class TeamSession: Service {
    package enum State: Hashable, Sendable {
        case held(SessionLease)
        /// There is no session lease, or it may have ended.
        case absent
    }

    /// The length of a session lease without a renewal.
    package static let timeToLive = Duration.seconds(10)
    /// The time between two renewals.
    package static let renewalInterval = Duration.seconds(3)
    /// The time between the local end of a session lease and its end in the team registry.
    package static let safetyMargin = Duration.seconds(1)
    /// The longest sleep before the local end is checked: timers of Linux stand still while the system is suspended.
    private static let longestSleep = Duration.seconds(1)
    /// The time for the last request of a broker that stops.
    private static let revocationLimit = Duration.seconds(2)

    private struct Progress {
        var sessionLease: SessionLease?
        /// The time of the local end of the session lease.
        var deadline = Duration.zero
        var lastGeneration: UInt64 = 0
        var failure: TeamStoreError?
        /// Ends the current session lease early.
        var endReport: AsyncStream<Void>.Continuation?
    }

    private let progress = Mutex(Progress())
    private let states = Broadcast<State>(slow: .keepsNewest(1))
    let store: any TeamStore
    let clock: any Clock<Duration>
    private let timer: ElapsedTimer
    private let now: @Sendable () -> Date
    let logger: Logger

    /// - Parameters:
    ///   - store: The team registry.
    ///   - clock: The clock of the session lease. It must run on while the system is suspended.
    ///   - now: Returns the time of the wall clock, for generations.
    ///   - logger: The logger.
    package init(
        store: any TeamStore,
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() },
        logger: Logger
    ) {
        self.store = store
        self.clock = clock
        self.now = now
        self.logger = logger
        timer = ElapsedTimer(clock)
    }

    /// The session lease, if it certainly has not ended by now.
    package var currentLease: SessionLease? {
        let elapsed = timer.elapsed
        return progress.withLock { $0.deadline > elapsed ? $0.sessionLease : nil }
    }

    /// The last failure of the team registry; nil while a session lease is held and renewed.
    package var failure: TeamStoreError? { progress.withLock { $0.failure } }

    /// The state now, and each later state. A slow reader gets only the newest state.
    package func changes() -> AsyncStream<State> {
        progress.withLock { states.subscribe(startingWith: $0.sessionLease.map { .held($0) } ?? .absent) }
    }

    /// Ends the session lease on this host after the team registry refused a write with it.
    package func reportEnd(of sessionLease: SessionLease) {
        progress.withLock { if $0.sessionLease == sessionLease { $0.endReport?.yield() } }
    }

    /// Keeps a session lease until the service group shuts down. Then revokes it, which deletes the entries of this
    /// broker.
    package func run() async throws {
        let last = await cancelWhenGracefulShutdown { await self.keepSessionLeases() }
        states.finish()
        guard let last else { return }
        _ = try? await withTimeout(Self.revocationLimit, clock: ContinuousClock()) { [store] in
            try await store.revokeSessionLease(last.id)
        }
    }

    /// - Returns: The session lease that was held at the cancellation.
    private func keepSessionLeases() async -> SessionLease? {
        var backoff = Self.backoff
        while !Task.isCancelled {
            if let sessionLease = await grantSessionLease() {
                backoff.reset()
                await keep(sessionLease)
                if Task.isCancelled { return sessionLease }
            } else {
                try? await backoff.wait(clock: clock)
            }
        }
        return nil
    }

    private static var backoff: Backoff { Backoff(from: .milliseconds(200), to: .seconds(2)) }

    private func grantSessionLease() async -> SessionLease? {
        // The team registry counts from a later time than this.
        let start = timer.elapsed
        do {
            let id = try await store.grantSessionLease(timeToLive: Self.timeToLive)
            let deadline = start + Self.timeToLive - Self.safetyMargin
            let milliseconds = UInt64(max(0, now().timeIntervalSince1970 * 1_000))
            let sessionLease = progress.withLock { progress in
                progress.lastGeneration = max(milliseconds, progress.lastGeneration + 1)
                let sessionLease = SessionLease(id: id, generation: progress.lastGeneration)
                (progress.sessionLease, progress.deadline) = (sessionLease, deadline)
                states.send(.held(sessionLease))
                return sessionLease
            }
            report(nil)
            return sessionLease
        } catch {
            report(error)
            return nil
        }
    }

    /// Renews a session lease until it ends, or until the task is cancelled.
    private func keep(_ sessionLease: SessionLease) async {
        let (reports, endReport) = AsyncStream.makeStream(of: Void.self)
        progress.withLock { $0.endReport = endReport }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.renew(sessionLease) }
            group.addTask { await self.waitForDeadline() }
            group.addTask { for await _ in reports { break } }
            await group.next()
            // A renewal may still wait for its answer. The subscribers learn the end before.
            lose(sessionLease)
            group.cancelAll()
        }
    }

    /// Renews a session lease. Returns at its end.
    private func renew(_ sessionLease: SessionLease) async {
        var backoff = Self.backoff
        var pause = Self.renewalInterval
        while true {
            do { try await clock.sleep(for: pause) } catch { return }
            let start = timer.elapsed
            do throws(TeamStoreError) {
                try await store.renewSessionLease(sessionLease.id)
                let elapsed = timer.elapsed
                let isInTime = progress.withLock { progress in
                    guard progress.sessionLease == sessionLease, progress.deadline > elapsed else { return false }
                    progress.deadline = start + Self.timeToLive - Self.safetyMargin
                    return true
                }
                report(nil)
                // A session lease that may have ended never comes back, because its claims have ended.
                guard isInTime else { return }
                backoff.reset()
                pause = Self.renewalInterval
            } catch {
                if Task.isCancelled { return }
                report(error)
                if error == .sessionLeaseEnded { return }
                pause = backoff.next()
            }
        }
    }

    /// Waits until no renewal has succeeded for too long.
    private func waitForDeadline() async {
        while !Task.isCancelled {
            let remaining = progress.withLock { $0.deadline } - timer.elapsed
            if remaining <= .zero { return }
            try? await clock.sleep(for: min(remaining, Self.longestSleep))
        }
    }

    private func lose(_ sessionLease: SessionLease) {
        progress.withLock { progress in
            guard progress.sessionLease == sessionLease else { return }
            (progress.sessionLease, progress.endReport) = (nil, nil)
            states.send(.absent)
        }
        guard !Task.isCancelled else { return }
        logger.warning(
            "lost the session lease in the registry of the team; all entries are published again",
            metadata: ["generation": "\(sessionLease.generation)"]
        )
    }

    /// Stores the result of a request, and logs the first failure and the first success after it.
    private func report(_ failure: TeamStoreError?) {
        let known = progress.withLock { progress in
            defer { progress.failure = failure }
            return progress.failure
        }
        if let failure, known == nil {
            logger.warning(
                "cannot renew the session lease in the registry of the team",
                metadata: ["reason": "\(failure)"]
            )
        } else if failure == nil, known != nil {
            logger.notice("the registry of the team answers again")
        }
    }
}
