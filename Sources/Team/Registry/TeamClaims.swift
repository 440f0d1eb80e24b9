package import AccessControl
import FoundationEssentials
import Logging
package import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// The claims in the registry of the team: those behind the leases of this host, and those of the other hosts.
///
/// A claim is created only if the team registry has none for the target. It belongs to the session lease. When that may
/// have ended, all claims end here at once, because another host may get them one second later.
package final class TeamClaims: LeaseClaims, Service {
    private struct Held {
        var value: [UInt8]
        /// The values that the team registry may have instead, after replacements without an answer.
        var otherValues: [[UInt8]] = []
        let sessionLease: SessionLease
        /// False until the watch has delivered this claim. Another host's claim that it delivers before is older.
        var isConfirmed = false

        func has(_ claim: TeamClaim?) -> Bool {
            ([value] + otherValues).contains { TeamCoding.value(TeamClaim.self, from: $0) == claim }
        }
    }

    /// The targets are those of the team registry, where an endpoint has a host.
    private struct State {
        var foreign: [LeaseTarget: TeamClaim] = [:]
        var held: [LeaseTarget: Held] = [:]
        /// The targets whose claims are being created.
        var acquiring: Set<LeaseTarget> = []
        /// The targets whose entries may name this host without a reason.
        var unchecked: Set<LeaseTarget> = []
        var lastNumber: UInt64 = 0
    }

    /// The number of attempts while the claims of other hosts end between two requests.
    private static let attempts = 5

    /// The targets of claims that ended without a release, as the leases name them. For a single consumer; ends with
    /// `run()`. Their leases must end at once.
    let ends: AsyncStream<Set<LeaseTarget>>

    private let continuation: AsyncStream<Set<LeaseTarget>>.Continuation
    private let state = Mutex(State())
    private let host: HostName
    private let session: TeamSession
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - host: The name of this host.
    ///   - session: The session of the claims, in the team registry that gets them.
    init(host: HostName, session: TeamSession) {
        self.host = host
        self.session = session
        (ends, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
        (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    package var foreignClaims: [LeaseTarget: TeamClaim] {
        state.withLock { state in
            // Such a claim ended before this host got its own.
            state.held.values.allSatisfy(\.isConfirmed)
                ? state.foreign : state.foreign.filter { state.held[$0.key]?.isConfirmed ?? true }
        }
    }

    var sessionStates: AsyncStream<TeamSession.State> { session.changes() }

    package func isHeld(_ target: LeaseTarget) -> Bool {
        guard let sessionLease = session.currentLease else { return false }
        return state.withLock { $0.held[target.on(host)]?.sessionLease == sessionLease }
    }

    /// The claim of an earlier process of this host is replaced, and the claim of a host that is no member any more.
    package func acquire(_ claim: LeaseClaim) async throws(LeaseClaimError) {
        let target = claim.target.on(host)
        let content = TeamClaim(claim, of: host, createdAt: Date())
        if try await replace(target, with: content) { return }
        guard let sessionLease = session.currentLease else { throw noSession }
        // A claim of an ended session lease is held until its end is reported.
        guard state.withLock({ $0.held[target] == nil && $0.acquiring.insert(target).inserted }) else {
            throw noSession
        }
        defer {
            state.withLock { _ = $0.acquiring.remove(target) }
            wake.yield()
        }
        let value = try value(of: content, at: target, under: sessionLease)
        let holder: TeamClaim?
        do { holder = try await create(target, value, under: sessionLease) } catch {
            throw failure(error, of: target, under: sessionLease)
        }
        if let holder { throw .held(holder) }
        let isHeld = state.withLock { state in
            guard session.currentLease == sessionLease else { return false }
            state.held[target] = Held(value: value, sessionLease: sessionLease)
            return true
        }
        guard isHeld else { throw noSession }
    }

    package func release(_ target: LeaseTarget) {
        let target = target.on(host)
        if state.withLock({ $0.held.removeValue(forKey: target) }) != nil { check(target) }
    }

    /// Records the claim of a target in the team registry, of any host; nil for none.
    ///
    /// - Returns: False if the claims of the other hosts have not changed.
    func record(_ claim: TeamClaim?, of target: LeaseTarget) -> Bool {
        let isOwn = claim?.host == host
        if isOwn { check(target) }
        let foreign = isOwn ? nil : claim
        return state.withLock { state in
            if isOwn, state.held[target]?.isConfirmed == false, state.held[target]?.has(claim) == true {
                state.held[target]?.isConfirmed = true
            }
            guard state.foreign[target] != foreign else { return false }
            state.foreign[target] = foreign
            return true
        }
    }

    /// Deletes the claim of a target if it names this host, and this host does not hold it. Returns at once.
    ///
    /// Every host may write claims, so one that was taken over can write them in the name of another.
    func check(_ target: LeaseTarget) {
        _ = state.withLock { $0.unchecked.insert(target.on(host)) }
        wake.yield()
    }

    /// Ends claims with the session lease, and deletes those not held, until the service group shuts down.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for await state in self.session.changes() { self.endClaims(outlasting: state) } }
                group.addTask { for await _ in self.wakes { await self.deleteUnheld() } }
                await group.waitForAll()
            }
        }
        endClaims(outlasting: .absent)
        continuation.finish()
    }

    private var noSession: LeaseClaimError {
        .unreachable(reason: session.failure?.description ?? "it is being established")
    }
}

/// Requests.
extension TeamClaims {
    /// Replaces the content of a claim. The claim is held during the replacement.
    ///
    /// - Returns: False if this host does not hold the claim. It ends here if another host has changed its entry.
    /// - Throws: `LeaseClaimError.unreachable`. Without an answer the claim has the old or the new content.
    private func replace(_ target: LeaseTarget, with claim: TeamClaim) async throws(LeaseClaimError) -> Bool {
        guard let sessionLease = session.currentLease, isHeld(target) else { return false }
        let value = try value(of: claim, at: target, under: sessionLease)
        let known = state.withLock { state -> [[UInt8]] in
            guard let held = state.held[target], held.sessionLease == sessionLease else { return [] }
            state.held[target]?.otherValues.append(value)
            return [held.value] + held.otherValues
        }
        guard !known.isEmpty else { return false }
        let key = TeamKey.claim(target).text
        let put = TeamStoreWrite.put(key: key, value: value, sessionLease: sessionLease.id)
        for expected in known {
            do {
                guard try await session.store.write([put], if: .equals(key: key, value: expected)) else { continue }
            } catch { throw failure(error, of: target, under: sessionLease) }
            state.withLock { state in
                // A later claim has other values.
                guard state.held[target]?.otherValues.contains(value) == true else { return }
                state.held[target]?.value = value
                state.held[target]?.otherValues = []
            }
            return true
        }
        release(target)
        return false
    }

    /// Writes a claim if the team registry has none for the target.
    ///
    /// - Returns: The claim of another host that the target has; nil if the claim was written.
    private func create(
        _ target: LeaseTarget,
        _ value: [UInt8],
        under sessionLease: SessionLease
    ) async throws(TeamStoreError) -> TeamClaim? {
        let key = TeamKey.claim(target).text
        let put = TeamStoreWrite.put(key: key, value: value, sessionLease: sessionLease.id)
        for _ in 0..<Self.attempts {
            if try await session.store.write([put], if: .absent(key: key)) { return nil }
            guard let entry = try await entry(key) else { continue }
            // An attempt without an answer may have been made.
            if entry.value == value { return nil }
            let claim = TeamCoding.value(TeamClaim.self, from: entry.value)
            if let claim, try await isValid(claim) { return claim }
            if try await session.store.write([put], if: .equals(key: key, value: entry.value)) { return nil }
        }
        throw .failed(reason: "the claim of \(target.name) changes too often; try again")
    }

    /// Returns the error of a claim that may have been written, or may still be.
    private func failure(
        _ error: TeamStoreError,
        of target: LeaseTarget,
        under sessionLease: SessionLease
    ) -> LeaseClaimError {
        guard error == .sessionLeaseEnded else {
            check(target)
            return .unreachable(reason: error.description)
        }
        session.reportEnd(of: sessionLease)
        return noSession
    }

    /// Returns the value of a new attempt.
    private func value(
        of claim: TeamClaim,
        at target: LeaseTarget,
        under sessionLease: SessionLease
    ) throws(LeaseClaimError) -> [UInt8] {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let entry = TeamClaimEntry(claim: claim, attempt: "\(sessionLease.generation).\(number)")
        do { return try entry.bytes(for: .claim(target)) } catch { throw .unreachable(reason: error.description) }
    }

    private func entry(_ key: String) async throws(TeamStoreError) -> TeamStoreEntry? {
        try await session.store.list(key).entries.first { $0.key == key }
    }

    /// Returns false for the claim of an earlier process of this host, and of a host that is no member.
    private func isValid(_ claim: TeamClaim) async throws(TeamStoreError) -> Bool {
        guard claim.host != host else { return false }
        return try await entry(TeamKey.member(claim.host).text) != nil
    }

    /// Ends the claims of other session leases than the current one.
    private func endClaims(outlasting current: TeamSession.State) {
        let ended = state.withLock { state in
            let ended = state.held.filter { .held($0.value.sessionLease) != current }.keys
            for target in ended { state.held[target] = nil }
            return Set(ended.map(\.onItsHost))
        }
        guard !ended.isEmpty else { return }
        continuation.yield(ended)
        guard !Task.isCancelled else { return }
        session.logger.warning(
            "ended the leases of this host, because other hosts may get them now",
            metadata: ["count": "\(ended.count)"]
        )
    }

    /// Deletes the claims of the unchecked targets that name this host, and that it does not hold.
    private func deleteUnheld() async {
        var backoff = Backoff(from: .milliseconds(100), to: .seconds(2))
        while !Task.isCancelled, let target = takeUnchecked() {
            do {
                try await deleteUnheld(target)
                backoff.reset()
            } catch {
                _ = state.withLock { $0.unchecked.insert(target) }
                try? await backoff.wait(clock: session.clock)
            }
        }
    }

    /// Removes and returns an unchecked target. The end of an attempt to acquire it wakes the service again.
    private func takeUnchecked() -> LeaseTarget? {
        state.withLock { state in
            let target = state.unchecked.first { !state.acquiring.contains($0) }
            return target.flatMap { state.unchecked.remove($0) }
        }
    }

    private func deleteUnheld(_ target: LeaseTarget) async throws(TeamStoreError) {
        let key = TeamKey.claim(target).text
        guard let entry = try await entry(key), TeamCoding.value(TeamClaim.self, from: entry.value)?.host == host else {
            return
        }
        let isHeld = state.withLock { state in
            guard !state.acquiring.contains(target) else {
                state.unchecked.insert(target)
                return true
            }
            return state.held[target].map { ([$0.value] + $0.otherValues).contains(entry.value) } ?? false
        }
        guard !isHeld else { return }
        _ = try await session.store.write([.delete(key: key)], if: .equals(key: key, value: entry.value))
    }
}

extension LeaseTarget {
    /// The target with the host of an endpoint, as in the team registry.
    fileprivate func on(_ host: HostName) -> LeaseTarget {
        if case .endpoint(let id) = self, id.host == nil { .endpoint(id.on(host)) } else { self }
    }

    /// The target without the host of an endpoint, as the broker of that host names it.
    fileprivate var onItsHost: LeaseTarget {
        if case .endpoint(let id) = self { .endpoint(id.onItsHost) } else { self }
    }
}
