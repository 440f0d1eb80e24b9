package import AccessControl
import Logging
package import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// The claims of this host: the entries behind its leases of endpoints and phones.
///
/// A claim is created only if the registry has none for the target. It belongs to the lease of the session. When that lease
/// may have ended, all claims end here at once, because another host may get them one second later.
package final class TeamClaims: Service {
    /// One claim of this host.
    package struct Handle: Hashable, Sendable {
        package let target: LeaseTarget
        /// A number that this process uses once.
        fileprivate let number: UInt64
    }

    private struct Held {
        let handle: Handle
        var claim: TeamClaim
        var value: [UInt8]
        /// The values that the registry may have instead, after replacements without an answer.
        var otherValues: [[UInt8]] = []
        let lease: TeamSession.Lease
    }

    private struct State {
        var held: [LeaseTarget: Held] = [:]
        /// The claims that are being created.
        var acquiring: [LeaseTarget: TeamClaim] = [:]
        /// The targets whose entries may name this host without a reason.
        var unchecked: Set<LeaseTarget> = []
        var lastNumber: UInt64 = 0
    }

    /// The number of attempts while the claims of other hosts end between two requests.
    private static let attempts = 5

    /// The claims that ended without a release, for a single consumer; ends with `run()`. Their leases must end at once.
    package let ends: AsyncStream<Handle>

    private let continuation: AsyncStream<Handle>.Continuation
    private let state = Mutex(State())
    private let host: HostName
    private let session: TeamSession
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - host: The name of this host.
    ///   - session: The lease of the claims, in the registry that gets them.
    package init(host: HostName, session: TeamSession) {
        self.host = host
        self.session = session
        (ends, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
        (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Creates a claim.
    ///
    /// The claim of an earlier process of this host is replaced, and the claim of a host that is no member any more.
    ///
    /// - Throws: `TeamError.claimed` if another lease has the target, also one of this host; `.noSession` without a
    ///   connection to the registry; `.store`.
    package func acquire(_ target: LeaseTarget, as claim: TeamClaim) async throws(TeamError) -> Handle {
        guard let lease = session.lease else { throw noSession }
        let target = target.on(host)
        let number = try state.withLock { state throws(TeamError) -> UInt64 in
            if let own = state.held[target]?.claim ?? state.acquiring[target] { throw .claimed(target, by: own) }
            state.acquiring[target] = claim
            state.lastNumber += 1
            return state.lastNumber
        }
        defer {
            state.withLock { $0.acquiring[target] = nil }
            wake.yield()
        }
        let entry = TeamClaimEntry(claim: claim, attempt: "\(lease.generation).\(number)")
        let value = try entry.bytes(for: .claim(target))
        try await create(target, value, under: lease)
        let handle = Handle(target: target, number: number)
        let isHeld = state.withLock { state in
            guard session.lease == lease else { return false }
            state.held[target] = Held(handle: handle, claim: claim, value: value, lease: lease)
            return true
        }
        guard isHeld else { throw noSession }
        return handle
    }

    /// Deletes a claim. Returns at once; the deletion is repeated until it succeeds.
    package func release(_ handle: Handle) {
        let isHeld = state.withLock { state in
            guard state.held[handle.target]?.handle == handle else { return false }
            state.held[handle.target] = nil
            return true
        }
        if isHeld { check(handle.target) }
    }

    /// Deletes the claim of a target if it names this host, and this host does not hold it. Returns at once.
    ///
    /// Every host may write claims, so one that was taken over can write them in the name of another.
    package func check(_ target: LeaseTarget) {
        _ = state.withLock { $0.unchecked.insert(target) }
        wake.yield()
    }

    /// Replaces the content of a claim. The claim is held during the replacement.
    ///
    /// - Throws: `TeamError.noSession` if the claim is not held, and if the registry does not answer. Without an answer the
    ///   claim has the old or the new content. `TeamError.store` if another host has changed the claim; `.notEncoded`.
    package func replace(_ handle: Handle, with claim: TeamClaim) async throws(TeamError) {
        let change = state.withLock { state -> (old: Held, number: UInt64)? in
            guard let held = state.held[handle.target], held.handle == handle, held.lease == session.lease else {
                return nil
            }
            state.lastNumber += 1
            return (held, state.lastNumber)
        }
        guard let (old, number) = change else { throw noSession }
        let key = TeamKey.claim(handle.target)
        let entry = TeamClaimEntry(claim: claim, attempt: "\(old.lease.generation).\(number)")
        let value = try entry.bytes(for: key)
        state.withLock { $0.held[handle.target]?.otherValues.append(value) }
        let put = TeamStoreWrite.put(key: key.text, value: value, lease: old.lease.id)
        for expected in [old.value] + old.otherValues {
            let condition = TeamStoreCondition.equals(key: key.text, value: expected)
            do throws(TeamStoreError) {
                guard try await session.store.write([put], if: condition) else { continue }
            } catch {
                guard error == .leaseEnded else { throw .noSession(reason: "\(error)") }
                session.reportEnd(of: old.lease)
                throw noSession
            }
            return state.withLock { state in
                guard state.held[handle.target]?.handle == handle else { return }
                state.held[handle.target]?.claim = claim
                state.held[handle.target]?.value = value
                state.held[handle.target]?.otherValues = []
            }
        }
        throw .store(.failed(reason: "another host has changed the claim of \(handle.target.name)"))
    }

    /// Returns whether a claim certainly stands now.
    package func isHeld(_ handle: Handle) -> Bool {
        guard let lease = session.lease else { return false }
        return state.withLock { state in
            state.held[handle.target].map { $0.handle == handle && $0.lease == lease } ?? false
        }
    }

    /// Ends claims with the lease of the session, and deletes those not held, until the service group shuts down.
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

    private var noSession: TeamError { .noSession(reason: session.failure?.description ?? "it is being established") }
}

/// Requests.
extension TeamClaims {
    /// Writes a claim if the registry has none for the target.
    private func create(
        _ target: LeaseTarget,
        _ value: [UInt8],
        under lease: TeamSession.Lease
    ) async throws(TeamError) {
        let key = TeamKey.claim(target).text
        let put = TeamStoreWrite.put(key: key, value: value, lease: lease.id)
        do {
            for _ in 0..<Self.attempts {
                if try await session.store.write([put], if: .absent(key: key)) { return }
                guard let entry = try await entry(key) else { continue }
                // An attempt without an answer may have been made.
                if entry.value == value { return }
                let claim = TeamCoding.value(TeamClaim.self, from: entry.value)
                if let claim, try await isValid(claim) { throw TeamError.claimed(target, by: claim) }
                if try await session.store.write([put], if: .equals(key: key, value: entry.value)) { return }
            }
            throw TeamError.store(.failed(reason: "the claim of \(target.name) changes too often; try again"))
        } catch let error as TeamError {
            throw error
        } catch TeamStoreError.leaseEnded {
            session.reportEnd(of: lease)
            throw noSession
        } catch {
            // The claim may have been created, or may still be.
            check(target)
            throw .noSession(reason: "\(error)")
        }
    }

    private func entry(_ key: String) async throws(TeamStoreError) -> TeamStoreEntry? {
        try await session.store.list(key).entries.first { $0.key == key }
    }

    /// Returns false for the claim of an earlier process of this host, and of a host that is no member.
    private func isValid(_ claim: TeamClaim) async throws(TeamStoreError) -> Bool {
        guard claim.host != host else { return false }
        return try await entry(TeamKey.member(claim.host).text) != nil
    }

    /// Ends the claims of other leases than the current one.
    private func endClaims(outlasting current: TeamSession.State) {
        let ended = state.withLock { state in
            let ended = state.held.values.filter { .held($0.lease) != current }
            for held in ended { state.held[held.handle.target] = nil }
            return ended
        }
        for held in ended.sorted(by: { $0.handle.number < $1.handle.number }) { continuation.yield(held.handle) }
        guard !ended.isEmpty, !Task.isCancelled else { return }
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
            let target = state.unchecked.first { state.acquiring[$0] == nil }
            return target.flatMap { state.unchecked.remove($0) }
        }
    }

    private func deleteUnheld(_ target: LeaseTarget) async throws(TeamStoreError) {
        let key = TeamKey.claim(target).text
        guard let entry = try await entry(key), TeamCoding.value(TeamClaim.self, from: entry.value)?.host == host else {
            return
        }
        let isHeld = state.withLock { state in
            guard state.acquiring[target] == nil else {
                state.unchecked.insert(target)
                return true
            }
            return state.held[target].map { ([$0.value] + $0.otherValues).contains(entry.value) } ?? false
        }
        guard !isHeld else { return }
        _ = try await session.store.write([.delete(key: key)], if: .equals(key: key, value: entry.value))
    }
}

/// A claim in the registry, with a number that makes the values of two attempts different.
struct TeamClaimEntry: Encodable {
    private enum Keys: String, CodingKey { case attempt }

    let claim: TeamClaim
    let attempt: String

    /// - Throws: `TeamError.notEncoded`, also for a claim that other hosts would ignore because of its size.
    func bytes(for key: TeamKey) throws(TeamError) -> [UInt8] {
        let bytes = try TeamCoding.bytes(of: self, for: key)
        guard bytes.count <= TeamCoding.readLimit else {
            throw .notEncoded(key: key.text, reason: "it has \(bytes.count) bytes; shorten the note of the lease")
        }
        return bytes
    }

    func encode(to encoder: any Encoder) throws {
        try claim.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(attempt, forKey: .attempt)
    }
}

extension LeaseTarget {
    /// The target with the host of an endpoint.
    fileprivate func on(_ host: HostName) -> LeaseTarget {
        if case .endpoint(let id) = self, id.host == nil { .endpoint(id.on(host)) } else { self }
    }
}
