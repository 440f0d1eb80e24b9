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
        var table = LeaseTable()
        var lastTicket: UInt64 = 0
        /// The waiting requests by ticket.
        var waiting: [UInt64: Promise<Void>] = [:]
        /// The sessions under grants by the number of their lease.
        var sessions: [UInt64: GrantSession] = [:]
        /// Wakes `run()`, because the next deadline may have moved forward.
        var wakeUp: AsyncStream<Void>.Continuation?
    }

    /// The longest time after which a lease that expired during a suspend of the system ends.
    private static let longestSleep = Duration.seconds(30)

    private let state = Mutex(State())
    private let store: AccessStore?
    private let phones: @Sendable () -> [EndpointID: UDID]
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let now: @Sendable () -> Date

    /// Creates a service without leases.
    ///
    /// - Parameters:
    ///   - store: The grants and the audit log; nil without grants.
    ///   - phones: Returns the phones that endpoints without a cable run on, as far as known (`LeaseTarget`).
    ///   - clock: The clock of the leases and of the wait times.
    ///   - now: Returns the time of the wall clock, for display.
    package init(
        store: AccessStore? = nil,
        phones: @escaping @Sendable () -> [EndpointID: UDID] = { [:] },
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.store = store
        self.phones = phones
        self.clock = clock
        self.now = now
        watch = ElapsedTimer(clock)
    }

    /// Ends leases when their time is over.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
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

    /// Changes the table, and completes the requests that the change granted.
    private func update<Value: Sendable, Failure: Error>(
        _ change: (inout LeaseTable, Duration) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let (elapsed, phones) = (watch.elapsed, phones())
        let (result, granted, sessions, wakeUp) = state.withLock { state in
            let deadline = state.table.deadline
            state.table.link(phones)
            let result: Result<Value, Failure>
            do throws(Failure) {
                result = .success(try change(&state.table, elapsed))
            } catch { result = .failure(error) }
            let effects = state.table.takeEffects()
            let isEarlier = state.table.deadline.map { new in deadline.map { new < $0 } ?? true } ?? false
            return (
                result, effects.granted.compactMap { state.waiting.removeValue(forKey: $0) },
                effects.ended.compactMap { state.sessions.removeValue(forKey: $0) }, isEarlier ? state.wakeUp : nil
            )
        }
        for promise in granted { promise.complete(.success(())) }
        for session in sessions { store?.live.unregister(session) }
        wakeUp?.yield()
        return try result.get()
    }
}

/// Leases.
extension LeaseService {
    /// Takes a lease, or renews the client's own lease.
    ///
    /// - Parameters:
    ///   - endpoint: An endpoint that the principal may call.
    ///   - principal: The client.
    ///   - seconds: The length, from 1 to `LeaseSpec.maxSeconds`.
    ///   - wait: The time to wait while another client has the lease. Clients wait in the order of their requests.
    ///   - note: The reason, which other clients see.
    ///   - renewing: The ID of the client's lease to renew; nil to take a lease if the client has none.
    /// - Returns: The lease.
    /// - Throws: `AccessError.leased` after the wait time, `.outOfRange`, `.limit`, `.leaseNeedsChangingTools`;
    ///   `.notFound` if the lease to renew has ended; `.refused` if the grant has ended; `CancellationError`.
    package func take(
        _ endpoint: Endpoint,
        for principal: Principal,
        seconds: Int,
        wait: Duration = .zero,
        note: SanitizedText? = nil,
        renewing: String? = nil
    ) async throws -> Lease {
        guard (1...LeaseSpec.maxSeconds).contains(seconds) else {
            throw AccessError.outOfRange("a lease is 1 to \(LeaseSpec.maxSeconds) seconds long, not \(seconds)")
        }
        guard principal.tools != .readOnly else { throw AccessError.leaseNeedsChangingTools }
        let (target, holder) = (LeaseTarget(endpoint), principal.leaseHolder)
        let promise = Promise<Void>()
        let ticket = state.withLock { state in
            state.lastTicket += 1
            state.waiting[state.lastTicket] = promise
            return state.lastTicket
        }
        let earlier = ownLease(on: target, of: holder)?.number
        do {
            let request = LeaseTable.Request(
                ticket: ticket,
                target: target,
                endpoint: endpoint.id,
                holder: holder,
                length: .seconds(seconds),
                note: note,
                renewing: renewing.map(Self.number(of:))
            )
            try update { table, now throws(AccessError) in try table.request(request, at: now) }
            try await self.wait(for: promise, wait)
        } catch {
            let conflict = conflict(on: target, for: holder)
            state.withLock { $0.waiting[ticket] = nil }
            let isWithdrawn = update { table, now in table.withdraw(ticket, at: now) }
            // Without a withdrawal, the lease was granted at the same moment.
            switch error {
            case is WaitTimeout where isWithdrawn: throw AccessError.leased(conflict)
            case is WaitTimeout: break
            case is CancellationError where !isWithdrawn:
                endOwn(target, holder, except: earlier)
                throw error
            default: throw error
            }
        }
        guard let lease = ownLease(on: target, of: holder) else {
            throw AccessError.leased(conflict(on: target, for: holder))
        }
        if lease.number != earlier { try begin(lease, by: principal, seconds: seconds) }
        return view(of: lease, at: endpoint, waiting: 0, for: principal)
    }

    private struct WaitTimeout: Error {}

    private func wait(for promise: Promise<Void>, _ limit: Duration) async throws {
        // A free lease is granted at once.
        if promise.isCompleted { return try await promise.value() }
        guard limit > .zero else { throw WaitTimeout() }
        let isGranted = try await withTimeout(limit, clock: clock) {
            try await promise.value()
            return true
        }
        guard isGranted != nil else { throw WaitTimeout() }
    }

    /// Registers a new lease with its grant, and records the lease in the audit log.
    private func begin(_ lease: LeaseTable.Entry, by principal: Principal, seconds: Int) throws {
        let number = lease.number
        if let grant = lease.holder.grant, let store {
            do {
                let session = try store.live.register(under: grant) { [weak self] in
                    self?.update { table, now in _ = table.end(number, at: now) }
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
        store?.auditLease(.leased, of: lease.request.endpoint, "for \(seconds) s", by: principal)
    }

    /// Ends a lease. Only its holder and an owner may do that; the end by an owner is recorded in the audit log.
    ///
    /// - Parameters:
    ///   - id: The ID of the lease.
    ///   - endpoints: The endpoints that the principal may see. The error names the holder of their leases only.
    ///   - principal: The client.
    /// - Throws: `AccessError.notFound`, `.notLeaseHolder`.
    package func end(_ id: String, among endpoints: [Endpoint], by principal: Principal) throws(AccessError) {
        let holder = principal.leaseHolder
        let found = heldLeases.first { Self.id($0.lease) == id }?.lease
        let isOwn = found?.holder.key == holder.key
        let visible = endpoints.map { LeaseTarget($0) }.first { found?.targets.contains($0) ?? false }
        guard let lease = found, isOwn || principal.isOwner || visible != nil else {
            throw state.withLock {
                $0.table.error(forEnded: Self.number(of: id), key: holder.key, isOwner: principal.isOwner)
            }
        }
        guard isOwn || principal.isOwner else {
            throw .notLeaseHolder(conflict(with: lease, on: visible ?? lease.request.target))
        }
        update { table, now in _ = table.end(lease.number, by: holder.name, at: now) }
        guard !isOwn else { return }
        store?.auditLease(.leaseBroken, of: lease.request.endpoint, "held by \(lease.holder.key)", by: principal)
    }

    /// Ends the principal's own lease of an endpoint, if there is one.
    package func release(_ endpoint: Endpoint, by principal: Principal) {
        endOwn(LeaseTarget(endpoint), principal.leaseHolder, except: nil)
    }

    private func endOwn(_ target: LeaseTarget, _ holder: LeaseHolder, except number: UInt64?) {
        update { table, now in
            for lease in table.leases(on: target) where lease.holder.key == holder.key && lease.number != number {
                table.end(lease.number, at: now)
            }
        }
    }

    private func ownLease(on target: LeaseTarget, of holder: LeaseHolder) -> LeaseTable.Entry? {
        state.withLock { $0.table.ownLease(on: target, of: holder.key) }
    }
}

/// The leases as other clients see them, and the checks of their calls.
extension LeaseService {
    /// The number of held leases.
    package var count: Int { heldLeases.count }

    /// False if no lease is held. Fast enough for each connection; true also for a lease that ends at this moment.
    package var mayHaveLeases: Bool { state.withLock { !$0.table.isEmpty } }

    private var heldLeases: [(lease: LeaseTable.Entry, waiting: Int)] {
        update { table, now in
            table.expire(at: now)
            return table.leases
        }
    }

    /// Returns the held leases of endpoints, as a principal sees them.
    ///
    /// A lease names an endpoint that the principal may see: its own, or another one that it covers.
    package func leases(of endpoints: [Endpoint], for principal: Principal) -> [Lease] {
        let leases = heldLeases
        guard !leases.isEmpty else { return [] }
        let visible = Dictionary(grouping: endpoints, by: LeaseTarget.init)
        return leases.compactMap { lease, waiting in
            let covered = lease.targets.flatMap { visible[$0] ?? [] }.sorted { $0.id < $1.id }
            guard let endpoint = covered.first(where: { $0.id == lease.request.endpoint }) ?? covered.first else {
                return nil
            }
            return view(of: lease, at: endpoint, waiting: waiting, for: principal)
        }
    }

    /// Returns the endpoints with their leases filled in.
    package func withLeases(_ endpoints: [Endpoint], for principal: Principal) -> [Endpoint] {
        let leases = heldLeases
        guard !leases.isEmpty else { return endpoints }
        let table = state.withLock { $0.table }
        return endpoints.map { endpoint in
            let number = table.leases(on: LeaseTarget(endpoint)).first?.number
            guard let (lease, waiting) = leases.first(where: { $0.lease.number == number }) else { return endpoint }
            var leased = endpoint
            leased.lease = view(of: lease, at: endpoint, waiting: waiting, for: principal)
            return leased
        }
    }

    /// Begins a changing call of an endpoint. While the call runs, no other client gets the lease.
    ///
    /// - Returns: The number of the call, to pass to `endCall`.
    /// - Throws: `AccessError.leased`.
    package func beginCall(of endpoint: Endpoint, by holder: LeaseHolder) throws(AccessError) -> UInt64 {
        let target = LeaseTarget(endpoint)
        let number = update { table, now in table.beginCall(on: target, by: holder, at: now) }
        guard let number else { throw .leased(conflict(on: target, for: holder)) }
        return number
    }

    package func endCall(_ number: UInt64) { update { table, now in table.endCall(number, at: now) } }

    /// Returns the conflict of a new connection; nil if no other client has the lease.
    package func connectionConflict(on target: LeaseTarget, holderKey: String) -> LeaseConflict? {
        let leases = update { table, now in
            table.expire(at: now)
            return table.leases(on: target)
        }
        return leases.first { $0.holder.key != holderKey }.map { conflict(with: $0, on: target) }
    }

    private func conflict(on target: LeaseTarget, for holder: LeaseHolder) -> LeaseConflict {
        connectionConflict(on: target, holderKey: holder.key)
            ?? LeaseConflict(target: target, holder: nil, seconds: 1, end: JSONCoding.text(of: now()))
    }

    private func conflict(with lease: LeaseTable.Entry, on target: LeaseTarget) -> LeaseConflict {
        LeaseConflict(
            target: target,
            holder: lease.holder.name,
            seconds: max(1, Int((lease.end - watch.elapsed) / .seconds(1))),
            end: JSONCoding.text(of: date(of: lease.end))
        )
    }

    /// Returns a lease as shown at an endpoint. A client that may not see every endpoint learns no phone from a link.
    private func view(
        of lease: LeaseTable.Entry,
        at endpoint: Endpoint,
        waiting: Int,
        for principal: Principal
    ) -> Lease {
        Lease(
            id: Self.id(lease),
            endpoint: endpoint.id,
            device: principal.canSeeAllEndpoints ? lease.device : endpoint.location.udid,
            holder: lease.holder.name,
            isOwn: lease.holder.key == principal.leaseHolder.key,
            note: lease.note,
            seconds: Int(lease.length / .seconds(1)),
            createdAt: date(of: lease.start),
            expiresAt: date(of: lease.end),
            waiting: waiting
        )
    }

    private static func number(of id: String) -> UInt64 { id.hasPrefix("l") ? UInt64(id.dropFirst()) ?? 0 : 0 }

    private static func id(_ lease: LeaseTable.Entry) -> String { "l\(lease.number)" }

    private func date(of time: Duration) -> Date { now() + (time - watch.elapsed) / .seconds(1) }
}
