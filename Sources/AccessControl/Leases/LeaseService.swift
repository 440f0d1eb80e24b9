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

    private let state = Mutex(State())
    private let store: AccessStore?
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let now: @Sendable () -> Date

    /// Creates a service without leases.
    ///
    /// - Parameters:
    ///   - store: The grants and the audit log; nil without grants.
    ///   - clock: The clock of the leases and of the wait times.
    ///   - now: Returns the time of the wall clock, for display.
    package init(
        store: AccessStore? = nil,
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.store = store
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
            if let deadline { group.addTask { try? await self.clock.sleep(for: deadline - self.watch.elapsed) } }
            group.addTask { for await _ in wakes { break } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Changes the table, and completes the requests that the change granted.
    private func update<Value: Sendable, Failure: Error>(
        _ change: (inout LeaseTable, Duration) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let elapsed = watch.elapsed
        let (result, granted, sessions, wakeUp) = state.withLock { state in
            let deadline = state.table.deadline
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
    /// - Returns: The lease.
    /// - Throws: `AccessError.leased` after the wait time, `.outOfRange`, `.limit`, `.leaseNeedsChangingTools`;
    ///   `.refused` if the grant has ended; `CancellationError`.
    package func take(
        _ endpoint: Endpoint,
        for principal: Principal,
        seconds: Int,
        wait: Duration = .zero,
        note: SanitizedText? = nil
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
        let earlier = lease(of: target).flatMap { $0.holder.key == holder.key ? $0.number : nil }
        do {
            let request = LeaseTable.Request(
                ticket: ticket,
                target: target,
                endpoint: endpoint.id,
                holder: holder,
                length: .seconds(seconds),
                note: note
            )
            try update { table, now throws(AccessError) in try table.request(request, at: now) }
            try await self.wait(for: promise, wait)
        } catch {
            let conflict = conflict(on: target, for: holder)
            state.withLock { $0.waiting[ticket] = nil }
            let isWithdrawn = update { table, now in table.withdraw(ticket, for: target, at: now) }
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
        guard let lease = lease(of: target), lease.holder.key == holder.key else {
            throw AccessError.leased(conflict(on: target, for: holder))
        }
        if lease.number != earlier { try begin(lease, by: principal, seconds: seconds) }
        return view(of: lease, waiting: 0, for: principal)
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
                    let isHeld = state.table.lease(of: lease.request.target)?.lease.number == number
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
        let leases = state.withLock { $0.table.leases }
        let found = leases.first { Self.id($0.lease) == id }?.lease
        let isOwn = found?.holder.key == principal.leaseHolder.key
        let isVisible = endpoints.contains { LeaseTarget($0) == found?.request.target }
        guard let lease = found, isOwn || principal.isOwner || isVisible else {
            throw .notFound("there is no lease with this ID; `patchbay leases` lists all")
        }
        guard isOwn || principal.isOwner else {
            throw .notLeaseHolder(conflict(with: lease, on: lease.request.target))
        }
        update { table, now in _ = table.end(lease.number, at: now) }
        guard !isOwn else { return }
        store?.auditLease(.leaseBroken, of: lease.request.endpoint, "held by \(lease.holder.key)", by: principal)
    }

    /// Ends the principal's own lease of an endpoint, if there is one.
    package func release(_ endpoint: Endpoint, by principal: Principal) {
        endOwn(LeaseTarget(endpoint), principal.leaseHolder, except: nil)
    }

    private func endOwn(_ target: LeaseTarget, _ holder: LeaseHolder, except number: UInt64?) {
        update { table, now in
            guard let lease = table.lease(of: target)?.lease, lease.holder.key == holder.key, lease.number != number
            else { return }
            table.end(lease.number, at: now)
        }
    }

    private func lease(of target: LeaseTarget) -> LeaseTable.Entry? {
        state.withLock { $0.table.lease(of: target)?.lease }
    }
}

/// The leases as other clients see them, and the checks of their calls.
extension LeaseService {
    /// The number of held leases.
    package var count: Int { state.withLock { $0.table.leases.count } }

    /// Returns the held leases of endpoints, as a principal sees them.
    ///
    /// A lease names an endpoint that the principal may see: its own, or another one on the same phone.
    package func leases(of endpoints: [Endpoint], for principal: Principal) -> [Lease] {
        let leases = state.withLock { $0.table.leases }
        guard !leases.isEmpty else { return [] }
        let visible = Dictionary(grouping: endpoints, by: LeaseTarget.init)
        return leases.compactMap { lease, waiting in
            guard let endpoints = visible[lease.request.target] else { return nil }
            let isVisible = endpoints.contains { $0.id == lease.request.endpoint }
            return view(of: lease, as: isVisible ? nil : endpoints.first?.id, waiting: waiting, for: principal)
        }
    }

    /// Returns the endpoints with their leases filled in.
    package func withLeases(_ endpoints: [Endpoint], for principal: Principal) -> [Endpoint] {
        let leases = state.withLock { $0.table.leases }
        guard !leases.isEmpty else { return endpoints }
        return endpoints.map { endpoint in
            let target = LeaseTarget(endpoint)
            guard let (lease, waiting) = leases.first(where: { $0.lease.request.target == target }) else {
                return endpoint
            }
            var endpoint = endpoint
            endpoint.lease = view(of: lease, as: endpoint.id, waiting: waiting, for: principal)
            return endpoint
        }
    }

    /// Begins a changing call of an endpoint. While the call runs, no other client gets the lease.
    ///
    /// - Returns: The target, to pass to `endCall`.
    /// - Throws: `AccessError.leased`.
    package func beginCall(of endpoint: Endpoint, by holder: LeaseHolder) throws(AccessError) -> LeaseTarget {
        let target = LeaseTarget(endpoint)
        let mayBegin = update { table, now in table.beginCall(on: target, by: holder, at: now) }
        guard mayBegin else { throw .leased(conflict(on: target, for: holder)) }
        return target
    }

    package func endCall(on target: LeaseTarget, by holder: LeaseHolder) {
        update { table, now in table.endCall(on: target, by: holder, at: now) }
    }

    /// Returns the conflict of a new connection; nil if no other client has the lease.
    package func connectionConflict(on target: LeaseTarget, holderKey: String) -> LeaseConflict? {
        let lease = update { table, now in
            table.expire(at: now)
            return table.lease(of: target)?.lease
        }
        guard let lease, lease.holder.key != holderKey else { return nil }
        return conflict(with: lease, on: target)
    }

    private func conflict(on target: LeaseTarget, for holder: LeaseHolder) -> LeaseConflict {
        guard let lease = lease(of: target), lease.holder.key != holder.key else {
            return LeaseConflict(target: target, holder: nil, seconds: 1, end: JSONCoding.text(of: now()))
        }
        return conflict(with: lease, on: target)
    }

    private func conflict(with lease: LeaseTable.Entry, on target: LeaseTarget) -> LeaseConflict {
        LeaseConflict(
            target: target,
            holder: lease.holder.name,
            seconds: max(1, Int((lease.end - watch.elapsed) / .seconds(1))),
            end: JSONCoding.text(of: date(of: lease.end))
        )
    }

    private func view(
        of lease: LeaseTable.Entry,
        as endpoint: EndpointID? = nil,
        waiting: Int,
        for principal: Principal
    ) -> Lease {
        Lease(
            id: Self.id(lease),
            endpoint: endpoint ?? lease.request.endpoint,
            device: lease.request.target.device,
            holder: lease.holder.name,
            isOwn: lease.holder.key == principal.leaseHolder.key,
            note: lease.note,
            seconds: Int(lease.length / .seconds(1)),
            createdAt: date(of: lease.start),
            expiresAt: date(of: lease.end),
            waiting: waiting
        )
    }

    private static func id(_ lease: LeaseTable.Entry) -> String { "l\(lease.number)" }

    private func date(of time: Duration) -> Date { now() + (time - watch.elapsed) / .seconds(1) }
}
