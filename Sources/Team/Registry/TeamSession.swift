package import FoundationEssentials
package import Logging
import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// This broker's lease in the registry of the team. All entries of the broker end with it.
///
/// The lease is renewed every 3 seconds. The broker treats it as lost 9 seconds after the last successful renewal, one
/// second before the registry may end it. By then this host has ended its claims, and another host may get them.
package final class TeamSession: Service {
    /// One lease in the registry.
    package struct Lease: Hashable, Sendable {
        package let id: SessionLease.ID
        /// A number that is greater for each later lease of this host. It is the time of the grant in milliseconds
        /// since 1970, and at least one more than the number before. So it also grows with a restart of the broker.
        package let generation: UInt64
    }

    package enum State: Hashable, Sendable {
        case held(Lease)
        /// There is no lease, or it may have ended.
        case absent
    }

    /// The length of the lease without a renewal.
    package static let timeToLive = Duration.seconds(10)
    /// The time between two renewals.
    package static let renewalInterval = Duration.seconds(3)
    /// The time between the local end of the lease and its end in the registry.
    package static let safetyMargin = Duration.seconds(1)
    /// The longest sleep before the local end is checked: timers of Linux stand still while the system is suspended.
    private static let longestSleep = Duration.seconds(1)
    /// The time for the last request of a broker that stops.
    private static let revocationLimit = Duration.seconds(2)

    private struct Progress {
        var lease: Lease?
        /// The time of the local end of the lease.
        var deadline = Duration.zero
        var lastGeneration: UInt64 = 0
        var failure: TeamStoreError?
        /// Ends the current lease early.
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
    ///   - store: The registry.
    ///   - clock: The clock of the lease. It must run on while the system is suspended.
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

    /// The lease, if it certainly has not ended by now.
    package var lease: Lease? {
        let elapsed = timer.elapsed
        return progress.withLock { $0.deadline > elapsed ? $0.lease : nil }
    }

    /// The last failure of the registry; nil while the lease is held and renewed.
    package var failure: TeamStoreError? { progress.withLock { $0.failure } }

    /// The state now, and each later state. A slow reader gets only the newest state.
    package func changes() -> AsyncStream<State> {
        progress.withLock { states.subscribe(startingWith: $0.lease.map { .held($0) } ?? .absent) }
    }

    /// Ends the local lease after the registry refused a write with it.
    package func reportEnd(of lease: Lease) {
        progress.withLock { if $0.lease == lease { $0.endReport?.yield() } }
    }

    /// Keeps a lease until the service group shuts down. Then revokes it, which deletes the entries of this broker.
    package func run() async throws {
        let last = await cancelWhenGracefulShutdown { await self.keepLeases() }
        states.finish()
        guard let last else { return }
        _ = try? await withTimeout(Self.revocationLimit, clock: ContinuousClock()) { [store] in
            try await store.revokeSessionLease(last.id)
        }
    }

    /// - Returns: The lease that was held at the cancellation.
    private func keepLeases() async -> Lease? {
        var backoff = Self.backoff
        while !Task.isCancelled {
            if let lease = await grantSessionLease() {
                backoff.reset()
                await keep(lease)
                if Task.isCancelled { return lease }
            } else {
                try? await backoff.wait(clock: clock)
            }
        }
        return nil
    }

    private static var backoff: Backoff { Backoff(from: .milliseconds(200), to: .seconds(2)) }

    private func grantSessionLease() async -> Lease? {
        // The registry counts from a later time than this.
        let start = timer.elapsed
        do {
            let id = try await store.grantSessionLease(timeToLive: Self.timeToLive)
            let deadline = start + Self.timeToLive - Self.safetyMargin
            let milliseconds = UInt64(max(0, now().timeIntervalSince1970 * 1_000))
            let lease = progress.withLock { progress in
                progress.lastGeneration = max(milliseconds, progress.lastGeneration + 1)
                let lease = Lease(id: id, generation: progress.lastGeneration)
                (progress.lease, progress.deadline) = (lease, deadline)
                states.send(.held(lease))
                return lease
            }
            report(nil)
            return lease
        } catch {
            report(error)
            return nil
        }
    }

    /// Renews a lease until it ends, or until the task is cancelled.
    private func keep(_ lease: Lease) async {
        let (reports, endReport) = AsyncStream.makeStream(of: Void.self)
        progress.withLock { $0.endReport = endReport }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.renew(lease) }
            group.addTask { await self.waitForDeadline() }
            group.addTask { for await _ in reports { break } }
            await group.next()
            // A renewal may still wait for its answer. The subscribers learn the end before.
            lose(lease)
            group.cancelAll()
        }
    }

    /// Renews a lease. Returns at its end.
    private func renew(_ lease: Lease) async {
        var backoff = Self.backoff
        var pause = Self.renewalInterval
        while true {
            do { try await clock.sleep(for: pause) } catch { return }
            let start = timer.elapsed
            do throws(TeamStoreError) {
                try await store.renewSessionLease(lease.id)
                let elapsed = timer.elapsed
                let isInTime = progress.withLock { progress in
                    guard progress.lease == lease, progress.deadline > elapsed else { return false }
                    progress.deadline = start + Self.timeToLive - Self.safetyMargin
                    return true
                }
                report(nil)
                // A lease that may have ended never comes back, because its claims have ended.
                guard isInTime else { return }
                backoff.reset()
                pause = Self.renewalInterval
            } catch {
                if Task.isCancelled { return }
                report(error)
                if error == .leaseEnded { return }
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

    private func lose(_ lease: Lease) {
        progress.withLock { progress in
            guard progress.lease == lease else { return }
            (progress.lease, progress.endReport) = (nil, nil)
            states.send(.absent)
        }
        guard !Task.isCancelled else { return }
        logger.warning(
            "lost the lease in the registry of the team; all entries are published again",
            metadata: ["generation": "\(lease.generation)"]
        )
    }

    /// Stores the result of a request, and logs the first failure and the first success after it.
    private func report(_ failure: TeamStoreError?) {
        let known = progress.withLock { progress in
            defer { progress.failure = failure }
            return progress.failure
        }
        if let failure, known == nil {
            logger.warning("cannot renew the lease in the registry of the team", metadata: ["reason": "\(failure)"])
        } else if failure == nil, known != nil {
            logger.notice("the registry of the team answers again")
        }
    }
}
