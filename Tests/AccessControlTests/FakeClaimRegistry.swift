import FoundationEssentials
import Model
import Synchronization
import SystemIO
import TestSupport

@testable import AccessControl

/// The claims of a team in memory, with the failures of a registry.
final class FakeClaimRegistry: Sendable {
    enum Condition: Sendable {
        case reachable
        case unreachable
        /// Receives requests and does not answer.
        case silent
        /// Answers after the latch is open.
        case slow(AsyncLatch)
    }

    private struct State {
        var claims: [LeaseTarget: TeamClaim] = [:]
        var condition = Condition.reachable
        var lapsed: Set<HostName> = []
        var acquisitions = 0
        var requests = 0
        var observers: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    var claims: [LeaseTarget: TeamClaim] { state.withLock { $0.claims } }

    func observe(_ observer: @escaping @Sendable () -> Void) { state.withLock { $0.observers.append(observer) } }

    /// The number of claims that were created or replaced.
    var acquisitions: Int { state.withLock { $0.acquisitions } }
    /// The number of requests for claims, also without an answer.
    var requests: Int { state.withLock { $0.requests } }

    /// Ends the time in which a host holds its claims, without a report, as a pause of its process does.
    func lapse(_ host: HostName) { state.withLock { _ = $0.lapsed.insert(host) } }

    fileprivate func hasLapsed(_ host: HostName) -> Bool { state.withLock { $0.lapsed.contains(host) } }

    /// Sets the condition, and reports it to the hosts as their mirrors do.
    func set(_ condition: Condition) { change { $0.condition = condition } }

    /// Puts or deletes a claim without a condition, as a host with write permission can.
    func force(_ claim: TeamClaim?, on target: LeaseTarget) { change { $0.claims[target] = claim } }

    fileprivate func acquire(_ claim: TeamClaim, on target: LeaseTarget) async throws(LeaseClaimError) {
        state.withLock { $0.requests += 1 }
        try await checkCondition()
        var holder: TeamClaim?
        change { state in
            holder = state.claims[target].flatMap { $0.host == claim.host ? nil : $0 }
            guard holder == nil else { return }
            state.claims[target] = claim
            state.acquisitions += 1
        }
        if let holder { throw .held(holder) }
    }

    fileprivate func release(_ target: LeaseTarget, of host: HostName) {
        change { state in if state.claims[target]?.host == host { state.claims[target] = nil } }
    }

    private func checkCondition() async throws(LeaseClaimError) {
        switch state.withLock({ $0.condition }) {
        case .reachable: return
        case .unreachable: throw .unreachable(reason: "no server answers")
        case .silent:
            try? await Task.sleep(for: .seconds(3_600))
            throw .unreachable(reason: "cancelled")
        case .slow(let latch): await latch.wait()
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let observers = state.withLock { state in
            body(&state)
            return state.observers
        }
        for observer in observers { observer() }
    }
}

/// A host of a team whose brokers share a registry.
struct FakeHost: Sendable {
    let name: HostName
    let service: LeaseService

    init(_ name: String, _ registry: FakeClaimRegistry, _ clock: ManualClock, phones: [EndpointID: UDID] = [:]) throws {
        guard let name = HostName(name) else { throw TestSupportError("\(name) is no host name") }
        self.name = name
        let service = LeaseService(
            claims: FakeLeaseClaims(host: name, registry: registry),
            phones: { phones },
            clock: clock
        )
        self.service = service
        registry.observe { [weak service] in service?.claimsChanged() }
    }

    /// Returns the owner with this UID at the broker of the host.
    func user(_ uid: UInt32) -> Principal {
        let actor = AuditActor.process(uid: uid, pid: 7, executable: SanitizedText("patchbay"))
        return Principal(.owner, source: .unix(uid: uid), actor: actor, user: uid, host: name)
    }
}

/// Tests of the leases of one phone, which one or more hosts reach.
protocol PhoneLeaseSuite {
    var hosts: [FakeHost] { get }
    var phone: UDID { get }
    /// The app of the phone; all hosts list it.
    var shop: Endpoint { get }
}

extension PhoneLeaseSuite {
    /// Runs the lease services of the hosts while the body runs.
    func running(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for host in hosts { group.addTask { try await host.service.run() } }
            defer { group.cancelAll() }
            try await body()
        }
    }

    /// Returns whether a user of a host may call the app.
    func mayCall(_ host: FakeHost, _ uid: UInt32 = 1) -> Bool {
        guard let call = try? host.service.beginCall(of: shop, by: host.user(uid).leaseHolder) else { return false }
        host.service.endCall(call)
        return true
    }

    /// Returns whether a user of a host may connect to the phone.
    func mayConnect(_ host: FakeHost, _ uid: UInt32 = 1) -> Bool {
        let key = host.user(uid).leaseHolder.key
        return host.service.connectionConflict(on: .device(phone), holderKey: key) == nil
    }
}

private struct FakeLeaseClaims: LeaseClaims {
    let host: HostName
    let registry: FakeClaimRegistry

    var foreignClaims: [LeaseTarget: TeamClaim] { registry.claims.filter { $0.value.host != host } }

    func isHeld(_ target: LeaseTarget) -> Bool { !registry.hasLapsed(host) }

    func acquire(_ claim: LeaseClaim) async throws(LeaseClaimError) {
        let entry = TeamClaim(claim, of: host, createdAt: Date(timeIntervalSince1970: 1_800_000_000))
        try await registry.acquire(entry, on: shared(claim.target))
    }

    func release(_ target: LeaseTarget) { registry.release(shared(target), of: host) }

    /// Returns the target as all hosts name it.
    private func shared(_ target: LeaseTarget) -> LeaseTarget {
        guard case .endpoint(let id) = target else { return target }
        return .endpoint(id.on(host))
    }
}
