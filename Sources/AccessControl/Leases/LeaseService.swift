package import FoundationEssentials
package import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// Grants exclusive use of endpoints and phones, and refuses the changing calls and tunnels of other clients meanwhile.
///
/// A lease lives in memory only: a restart of the broker ends all leases. A lock protects the table instead of an actor,
/// because every changing call asks the table before its delivery.
package final class LeaseService: Service {
    private struct State {
        var table: LeaseTable
        var lastTicket: UInt64 = 0
        /// The waiting requests by ticket.
        var waiting: [UInt64: Waiter] = [:]
        /// The claims that the leases needed after the last change.
        var neededClaims: [LeaseTarget: LeaseClaim] = [:]
        /// The sessions under grants by the number of their lease.
        var sessions: [UInt64: GrantSession] = [:]
        var history = LeaseHistory()
        /// Wakes `run()`, because the next deadline may have moved forward.
        var wakeUp: AsyncStream<Void>.Continuation?
    }

    /// A request that waits.
    private struct Waiter {
        let promise: Promise<Void>
        /// False for a request that does not wait while another client has the lease.
        let isPatient: Bool
    }

    /// The time in which the registry of the team must answer a client that does not wait.
    private static let claimTimeout = Duration.seconds(10)
    /// The longest time after which a lease that expired during a suspend of the system ends.
    private static let longestSleep = Duration.seconds(30)

    /// Wakes the synchronization of the claims.
    let claimWakeUps = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let team: Mutex<(any LeaseClaims)?>
    let phones: @Sendable () -> [EndpointID: UDID]
    let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let now: @Sendable () -> Date
    private let state: Mutex<State>
    private let store: AccessStore?

    /// Creates a service without leases.
    ///
    /// - Parameters:
    ///   - store: The grants and the audit log; nil without grants.
    ///   - claims: The claims of the team at the start; nil without a team.
    ///   - phones: Returns the phones that endpoints without a cable run on, as far as known (`LeaseTarget`).
    ///   - clock: The clock of the leases and of the wait times.
    ///   - now: Returns the time of the wall clock, for display.
    package init(
        store: AccessStore? = nil,
        claims: (any LeaseClaims)? = nil,
        phones: @escaping @Sendable () -> [EndpointID: UDID] = { [:] },
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        state = Mutex(State(table: LeaseTable(needsClaims: claims != nil)))
        self.store = store
        team = Mutex(claims)
        self.phones = phones
        self.clock = clock
        self.now = now
        watch = ElapsedTimer(clock)
    }

    /// Ends leases when their time is over, and synchronizes their claims in a team.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { [self] in
                    for await _ in claimWakeUps.stream {
                        if let claims { await LeaseClaimSynchronizer(leases: self, claims: claims).synchronize() }
                    }
                }
                await expire()
            }
        }
    }

    /// The claims of the team; nil without a team.
    package var claims: (any LeaseClaims)? { team.withLock { $0 } }

    /// Uses the claims of a team from now on, or none. The leases stay.
    ///
    /// The phones of held leases are claimed next. Until then their holders may use them as before.
    package func use(_ claims: (any LeaseClaims)?) {
        team.withLock { $0 = claims }
        update { table, now in table.setNeedsClaims(claims != nil, at: now) }
        claimsChanged()
    }

    private func expire() async {
        while !Task.isCancelled {
            let (wakes, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            state.withLock { $0.wakeUp = wakeUp }
            let deadline = update { table, now in
                table.expire(at: now)
                return table.deadline
            }
            await wait(until: deadline, or: wakes)
        }
    }

    private func wait(until deadline: Duration?, or wakes: AsyncStream<Void>) async {
        await withTaskGroup(of: Void.self) { group in
            if let deadline {
                // Timers of Linux stand still while the system is suspended, and the clock does not.
                let limit = min(deadline - self.watch.elapsed, Self.longestSleep)
                group.addTask { try? await self.clock.sleep(for: limit) }
            }
            group.addTask { for await _ in wakes { break } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Changes the table, completes the requests that the change granted, and updates the claims. The audit log gets the
    /// ends of leases before the next ones begin, with the client whose request ends them.
    func update<Value: Sendable, Failure: Error>(
        endedBy principal: Principal? = nil,
        _ change: (inout LeaseTable, Duration) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let (elapsed, phones) = (watch.elapsed, phones())
        let (result, granted, sessions, ended, lapsed, wakeUp, changesClaims) = state.withLock { state in
            let deadline = state.table.deadline
            state.table.link(phones)
            let result: Result<Value, Failure>
            do throws(Failure) {
                result = .success(try change(&state.table, elapsed))
            } catch { result = .failure(error) }
            let effects = state.table.takeEffects()
            if !effects.ended.isEmpty { state.history.add(effects.ended, at: LeaseTime(elapsed: elapsed, date: now())) }
            let neededClaims = state.table.neededClaims
            let changesClaims = neededClaims != state.neededClaims
            state.neededClaims = neededClaims
            let isEarlier = state.table.deadline.map { new in deadline.map { new < $0 } ?? true } ?? false
            return (
                result, effects.granted.compactMap { state.waiting.removeValue(forKey: $0) },
                effects.ended.compactMap { state.sessions.removeValue(forKey: $0.number) },
                effects.ended.filter { lease in !effects.lapsed.contains { $0.lease.number == lease.number } },
                effects.lapsed,
                isEarlier ? state.wakeUp : nil,
                changesClaims
            )
        }
        for (lease, reason) in lapsed { audit(.leaseEnded, lease, reason, by: .broker) }
        if let principal {
            for lease in ended {
                let isOwn = lease.holder.key == principal.leaseHolder.key
                audit(isOwn ? .leaseEnded : .leaseBroken, lease, isOwn ? "released" : nil, by: principal)
            }
        }
        for waiter in granted { waiter.promise.complete(.success(())) }
        if changesClaims { claimWakeUps.continuation.yield() }
        for session in sessions { store?.live.unregister(session) }
        wakeUp?.yield()
        return try result.get()
    }

    /// Completes the request that needs the claim of a target with an error. A request that waits for other clients also
    /// waits for the end of another host's claim.
    func refuse(_ target: LeaseTarget, _ error: LeaseClaimError) {
        let waiter = state.withLock { state -> Waiter? in
            guard let ticket = state.table.ticket(waitingForClaimOf: target), let waiter = state.waiting[ticket] else {
                return nil
            }
            if waiter.isPatient, case .held = error { return nil }
            return state.waiting.removeValue(forKey: ticket)
        }
        waiter?.promise.complete(.failure(error))
    }
}

/// Leases.
extension LeaseService {
    /// Throws unless a client may ask for a lease of this length.
    ///
    /// - Throws: `AccessError.outOfRange`, `.leaseNeedsChangingTools`.
    package static func checkLease(of seconds: Int, for principal: Principal) throws(AccessError) {
        guard (1...LeaseSpec.maxSeconds).contains(seconds) else {
            throw .outOfRange("a lease is 1 to \(LeaseSpec.maxSeconds) seconds long, not \(seconds)")
        }
        guard principal.tools != .readOnly else { throw .leaseNeedsChangingTools }
    }

    package func take(
        _ endpoint: Endpoint,
        for principal: Principal,
        seconds: Int,
        wait: Duration = .zero,
        note: SanitizedText? = nil,
        renewing: String? = nil
    ) async throws -> Lease {
        if let host = endpoint.id.host {
            throw AccessError.notFound("\(endpoint.id.onItsHost) belongs to the host \(host)")
        }
        try Self.checkLease(of: seconds, for: principal)
        let request = LeaseRequest(
            ticket: state.withLock { state in
                state.lastTicket += 1
                return state.lastTicket
            },
            target: LeaseTarget(endpoint),
            endpoint: endpoint.id,
            holder: principal.leaseHolder,
            length: .seconds(seconds),
            note: note,
            renewing: renewing.map { LeaseEntry.number(of: Lease.parts(ofID: $0).id) }
        )
        let lease = try await lease(for: request, within: wait, principal)
        // Requests of one holder that arrive together get one lease, which only the first of them begins.
        if lease.request.ticket == request.ticket { try begin(lease, by: principal, seconds: seconds) }
        return lease.view(at: endpoint, waiting: 0, for: principal, at: time)
    }

    /// Makes a request, and waits until it is granted.
    ///
    /// A request may be granted at the moment at which its wait ends. After a timeout, the lease then counts. After another
    /// error it ends, unless the client had it before.
    private func lease(
        for request: LeaseRequest,
        within limit: Duration,
        _ principal: Principal
    ) async throws -> LeaseEntry {
        let (ticket, promise) = (request.ticket, Promise<Void>())
        let earlier = ownLease(of: request)?.number
        state.withLock { $0.waiting[ticket] = Waiter(promise: promise, isPatient: limit > .zero) }
        defer { state.withLock { $0.waiting[ticket] = nil } }
        try update { table, now throws(AccessError) in try table.request(request, at: now) }
        do {
            if try await !wait(for: promise, of: ticket, limit) {
                let failure = timeoutError(of: request, principal)
                if withdraw(ticket) { throw failure }
            }
        } catch let error where !(error is AccessError) {
            if !withdraw(ticket) { endOwn(request.target, request.holder, except: earlier, by: nil) }
            throw (error as? LeaseClaimError)?.accessError(on: request.target) ?? error
        }
        guard let lease = ownLease(of: request) else { throw AccessError.leased(conflict(of: request, principal)) }
        return lease
    }

    /// Waits for the grant of a request.
    ///
    /// - Returns: False after the time limit.
    private func wait(for promise: Promise<Void>, of ticket: UInt64, _ limit: Duration) async throws -> Bool {
        // A free lease is granted at once without a team.
        if !promise.isCompleted {
            let waitsForClaim = state.withLock { $0.table.waitsForClaim(ticket) }
            let limit = limit == .zero && waitsForClaim ? Self.claimTimeout : limit
            guard limit > .zero else { return false }
            return try await withTimeout(limit, clock: clock) { try await promise.value() } != nil
        }
        try await promise.value()
        return true
    }

    /// Returns the error of a request that still waits at its time limit.
    private func timeoutError(of request: LeaseRequest, _ principal: Principal) -> AccessError {
        let conflict = conflict(of: request, principal)
        guard conflict.holder == nil, state.withLock({ $0.table.waitsForClaim(request.ticket) }) else {
            return .leased(conflict)
        }
        return LeaseClaimError.unreachable(reason: "no answer in time").accessError(on: request.target)
    }

    private func conflict(of request: LeaseRequest, _ principal: Principal) -> LeaseConflict {
        conflict(on: request.target, for: request.holder).known(to: principal)
    }

    /// Returns false if the request was granted before.
    private func withdraw(_ ticket: UInt64) -> Bool { update { table, now in table.withdraw(ticket, at: now) } }

    /// Registers a new lease with its grant, and records the lease in the audit log.
    private func begin(_ lease: LeaseEntry, by principal: Principal, seconds: Int) throws {
        let number = lease.number
        if let grant = lease.holder.grant, let store {
            do {
                let session = try store.live.register(under: grant) { [weak self] in
                    self?.update { table, now in table.lapse(number, because: "the grant has ended", at: now) }
                }
                let isHeld = state.withLock { state in
                    let isHeld = state.table.leases.contains { $0.lease.number == number }
                    if isHeld { state.sessions[number] = session }
                    return isHeld
                }
                if !isHeld { store.live.unregister(session) }
            } catch {
                update { table, now in _ = table.end(number, at: now) }
                throw error
            }
        }
        audit(.leased, lease, "for \(seconds) s", by: principal)
    }

    /// Records an event of a lease. The end of another client's lease names that client, as its own events do.
    private func audit(_ action: AuditEvent.Action, _ lease: LeaseEntry, _ detail: String?, by principal: Principal) {
        let holder = lease.holder
        let isOwn = holder.key == principal.leaseHolder.key
        let name = isOwn ? nil : "held by \(holder.grant.map { "grant \($0)" } ?? holder.name.text)"
        let details = [detail, name].compactMap { $0 }.joined(separator: ", ")
        store?.auditLease(action, of: lease.request.endpoint, details, by: principal)
    }

    package func end(_ id: String, among endpoints: [Endpoint], by principal: Principal) throws(AccessError) {
        if let host = Lease.parts(ofID: id).host {
            throw .notFound("this broker belongs to no team with a host \(host)")
        }
        let holder = principal.leaseHolder
        let found = current.leases.first { $0.lease.id == id }?.lease
        let isOwn = found?.holder.key == holder.key
        let visible = endpoints.map { LeaseTarget($0) }.first { found?.targets.contains($0) ?? false }
        guard let lease = found, isOwn || principal.isOwner || visible != nil else {
            update { table, _ in table.ended.acknowledge(LeaseEntry.number(of: id), by: holder.key) }
            throw state.withLock {
                $0.table.ended.error(for: LeaseEntry.number(of: id), key: holder.key, isOwner: principal.isOwner)
            }
        }
        guard isOwn || principal.isOwner else {
            throw .notLeaseHolder(lease.conflict(on: visible ?? lease.request.target, at: time).known(to: principal))
        }
        update(endedBy: principal) { table, now in
            _ = table.end(lease.number, because: "\(holder.name) ended it", at: now)
        }
    }

    package func release(_ endpoint: Endpoint, by principal: Principal) {
        endOwn(LeaseTarget(endpoint), principal.leaseHolder, except: nil, by: principal)
    }

    private func endOwn(
        _ target: LeaseTarget,
        _ holder: LeaseHolder,
        except number: UInt64?,
        by principal: Principal?
    ) {
        update(endedBy: principal) { table, now in
            table.ended.acknowledge(table.targets(of: target), by: holder.key)
            for lease in table.leases(on: target) where lease.holder.key == holder.key && lease.number != number {
                table.end(lease.number, at: now)
            }
        }
    }

    private func ownLease(of request: LeaseRequest) -> LeaseEntry? {
        state.withLock { $0.table.ownLease(on: request.target, of: request.holder.key) }
    }

    var history: LeaseHistory { state.withLock { $0.history } }

    /// The current time, for display.
    var time: LeaseTime { LeaseTime(elapsed: watch.elapsed, date: now()) }

    /// True if a lease is held or pending, or if its holder does not know its end yet.
    var hasEntries: Bool { state.withLock { !$0.table.isEmpty || !$0.table.ended.areKnown } }

    /// The table, without the leases whose time is over.
    var current: LeaseTable {
        update { table, now in
            table.expire(at: now)
            return table
        }
    }
}
