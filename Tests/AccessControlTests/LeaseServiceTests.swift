import FoundationEssentials
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct LeaseServiceTests {
    private let scratch = ScratchFolder.current
    private static let udid: UDID = "00008101-000123456789ABCD"

    private let clock = ManualClock()
    private let service: LeaseService
    private let shop = Fixture.endpoint("com.example.shop", udid: udid)
    private let notes = Fixture.endpoint("com.example.notes", udid: udid)

    init() { service = LeaseService(clock: clock, now: { Date(timeIntervalSince1970: 1_800_000_000) }) }

    private static func user(_ uid: UInt32, pid: Int32 = 7) -> Principal {
        let actor = AuditActor.process(uid: uid, pid: pid, executable: SanitizedText("patchbay"))
        return Principal(.owner, source: .unix(uid: uid), actor: actor, user: uid)
    }

    @Test func `a lease covers all apps of the phone, and names holder and end`() async throws {
        let lease = try await service.take(shop, for: Self.user(1), seconds: 60)

        #expect(lease.device == Self.udid && lease.isOwn && lease.seconds == 60)
        #expect(throws: Never.self) { try service.beginCall(of: notes, by: Self.user(1).leaseHolder) }
        let other = Fixture.grantee("b").leaseHolder
        let error = #expect(throws: AccessError.self) { try service.beginCall(of: notes, by: other) }
        let end = LocalTime.text(of: Date(timeIntervalSince1970: 1_800_000_060))
        let message = "is leased to \"user 1\" until \(end) (60 s)"
        #expect(error?.description == "\(Self.udid) \(message)")
    }

    @Test func `a refusal has the note of the lease`() async throws {
        _ = try await service.take(shop, for: Self.user(1), seconds: 60, note: SanitizedText("mine"))

        let other = Fixture.grantee("b").leaseHolder
        let error = #expect(throws: AccessError.self) { try service.beginCall(of: notes, by: other) }
        #expect(error?.description.contains("is leased to \"user 1\" (\"mine\") until ") == true)
    }

    @Test func `an endpoint without a phone is leased alone`() async throws {
        let simulator = Fixture.endpoint("com.example.sim")
        _ = try await service.take(simulator, for: Self.user(1), seconds: 60)

        #expect(throws: AccessError.self) { try service.beginCall(of: simulator, by: Fixture.grantee("b").leaseHolder) }
        #expect(throws: Never.self) { try service.beginCall(of: shop, by: Fixture.grantee("b").leaseHolder) }
    }

    @Test func `a user and each agent of that user are different holders`() async throws {
        _ = try await service.take(shop, for: Self.user(1), seconds: 60)

        #expect(throws: Never.self) { try service.beginCall(of: shop, by: Self.user(1, pid: 8).leaseHolder) }
        #expect(throws: AccessError.self) { try service.beginCall(of: shop, by: Self.user(1).asMCPClient.leaseHolder) }
        #expect(Self.user(1, pid: 8).asMCPClient.leaseHolder != Self.user(1, pid: 9).asMCPClient.leaseHolder)
    }

    @Test func `a waiting client gets the lease when it expires`() async throws {
        let waiting = try await waiter(seconds: 20)

        clock.advance(by: .seconds(10))

        #expect(try await waiting.value.holder.text == "grant b")
    }

    @Test func `a lease that expires while the system is suspended passes on soon after`() async throws {
        let suspendable = SuspendableClock(clock)
        let service = LeaseService(clock: suspendable)
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 3_600)
        let waiting = Task { [shop] in
            try await withThrowingTaskGroup(of: Lease?.self) { group in
                group.addTask {
                    try await service.run()
                    return nil
                }
                group.addTask {
                    try await service.take(shop, for: Fixture.grantee("b"), seconds: 5, wait: .seconds(3_600))
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
        }
        await clock.waitForSleepers(2)

        suspendable.suspend(for: .seconds(3_600))
        clock.advance(by: .seconds(30))

        #expect(try await waiting.value?.holder.text == "grant b")
    }

    @Test func `an expired lease is no longer shown`() async throws {
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 10)

        clock.advance(by: .seconds(10))

        #expect(service.count == 0 && service.withLeases([shop], for: Self.user(1)).allSatisfy { $0.lease == nil })
    }

    @Test func `a renewal of a lease that an owner ended is refused with the owner's name`() async throws {
        let lease = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60)
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60, renewing: lease.id)
        try service.end(lease.id, among: [], by: Self.user(1))

        let error = await #expect(throws: AccessError.self) {
            try await service.take(shop, for: Fixture.grantee("a"), seconds: 60, renewing: lease.id)
        }

        #expect(error == .notFound("lease \(lease.id) has ended: user 1 ended it"))
        #expect(service.count == 0)
        let ending = #expect(throws: AccessError.self) {
            try service.end(lease.id, among: [], by: Fixture.grantee("a"))
        }
        #expect(ending == error)
    }

    @Test func `after the wait time, the error names the holder`() async throws {
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60)
        let second = Task { [service, shop] in
            try await service.take(shop, for: Fixture.grantee("b"), seconds: 5, wait: .seconds(9))
        }
        await clock.waitForSleepers(1)
        clock.advance(by: .seconds(9))

        let error = await #expect(throws: AccessError.self) { try await second.value }

        #expect(error?.description.contains("leased to \"grant a\"") == true)
        #expect(error?.description.contains("(51 s)") == true)
        #expect(service.leases(of: [shop], for: Self.user(1)).map(\.waiting) == [0])
    }

    @Test func `a client that stops waiting leaves the queue`() async throws {
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60)
        let waiting = Task { [service, shop] in
            try await service.take(shop, for: Fixture.grantee("b"), seconds: 5, wait: .seconds(9))
        }
        await clock.waitForSleepers(1)
        #expect(service.leases(of: [shop], for: Self.user(1)).map(\.waiting) == [1])

        waiting.cancel()

        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(service.leases(of: [shop], for: Self.user(1)).map(\.waiting) == [0])
    }

    @Test func `only the holder and an owner end a lease, and the end by an owner is audited`() async throws {
        let store = try Fixture.store(in: scratch)
        let service = LeaseService(store: store, clock: clock)
        let (grant, _) = try await store.grant()
        let (other, _) = try await store.grant()
        let lease = try await service.take(shop, for: Fixture.grantee(grant.id), seconds: 60)

        let refusal = #expect(throws: AccessError.self) {
            try service.end(lease.id, among: [shop], by: Fixture.grantee(other.id))
        }
        #expect(refusal?.description.contains(" is leased to \"") == true)
        let hidden = #expect(throws: AccessError.self) {
            try service.end(lease.id, among: [], by: Fixture.grantee(other.id))
        }
        let unknown = #expect(throws: AccessError.self) { try service.end("l99", among: [shop], by: Self.user(1)) }
        #expect(hidden == unknown)
        try service.end(lease.id, among: [], by: Self.user(1))
        #expect(service.count == 0)
        try await store.close()

        let audited = try Fixture.audit(in: scratch).map(\.event).filter { $0.endpoint == shop.id }
        #expect(audited.map(\.action) == [.leased, .leaseBroken])
        #expect(audited.last?.detail == "held by grant \(grant.id)")
    }

    @Test func `a lease ends with its grant, before the revocation returns`() async throws {
        let store = try Fixture.store(in: scratch)
        let service = LeaseService(store: store, clock: clock)
        let (grant, _) = try await store.grant()
        _ = try await service.take(shop, for: Fixture.grantee(grant.id), seconds: 60)

        try await store.grants.revoke(grant.id)

        #expect(service.count == 0)
        await #expect(throws: AccessError.refused) {
            try await service.take(shop, for: Fixture.grantee(grant.id), seconds: 60)
        }
        #expect(service.count == 0)
    }

    @Test func `requests of one grant that are granted together begin one lease`() async throws {
        let store = try Fixture.store(in: scratch)
        let service = LeaseService(store: store, clock: clock)
        let (grant, _) = try await store.grant()
        let first = try await service.take(shop, for: Self.user(1), seconds: 60)
        let leases = try await withThrowingTaskGroup(of: Lease.self) { [shop, clock] group in
            for _ in 0..<2 {
                group.addTask {
                    try await service.take(shop, for: Fixture.grantee(grant.id), seconds: 60, wait: .seconds(60))
                }
            }
            await clock.waitForSleepers(2)
            try service.end(first.id, among: [], by: Self.user(1))
            return try await group.reduce(into: []) { $0.append($1) }
        }

        #expect(leases.count == 2 && leases[0].id == leases[1].id)
        #expect(store.live.content.withLock { $0.sessions.count } == 1)
        try service.end(leases[0].id, among: [], by: Self.user(1))
        #expect(store.live.content.withLock { $0.sessions.count } == 0)
        try await store.close()
        let audited = try Fixture.audit(in: scratch).map(\.event).filter { $0.endpoint == shop.id }
        #expect(audited.map(\.action) == [.leased, .leaseEnded, .leased, .leaseBroken])
    }

    @Test func `the audit log has the end of each lease with its reason`() async throws {
        let store = try Fixture.store(in: scratch)
        let service = LeaseService(store: store, clock: clock)
        let (grant, _) = try await store.grant()
        let first = try await service.take(shop, for: Self.user(1), seconds: 60)
        try service.end(first.id, among: [shop], by: Self.user(1))
        _ = try await service.take(shop, for: Self.user(1), seconds: 60)
        service.release(shop, by: Self.user(1))
        _ = try await service.take(shop, for: Self.user(1), seconds: 60)
        clock.advance(by: .seconds(61))
        #expect(service.count == 0)
        _ = try await service.take(shop, for: Fixture.grantee(grant.id), seconds: 60)
        _ = try await GrantService(store: store).revoke(.one(grant.id), by: Self.user(1).actor, from: .broker)
        #expect(service.count == 0)
        try await store.close()

        let audited = try Fixture.audit(in: scratch).map(\.event).filter { $0.action == .leaseEnded }
        #expect(
            audited.map(\.detail) == [
                "released", "released", "expired, held by user 1", "the grant has ended, held by grant \(grant.id)",
            ]
        )
        #expect(audited.map(\.who) == [Self.user(1).actor, Self.user(1).actor, .broker, .broker])
    }

    @Test func `leases are shown for visible phones only, and marked as own`() async throws {
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60, note: SanitizedText("login"))

        let seen = service.leases(of: [notes], for: Fixture.grantee("b"))

        #expect(seen.map(\.endpoint) == [notes.id] && seen.map(\.isOwn) == [false])
        #expect(service.leases(of: [Fixture.endpoint("com.example.sim")], for: Fixture.grantee("b")).isEmpty)
        #expect(service.withLeases([shop], for: Fixture.grantee("a")).map(\.lease?.isOwn) == [true])
        #expect(service.withLeases([shop], for: Fixture.grantee("a")).map(\.lease?.note?.text) == ["login"])
    }

    @Test func `a renewal replaces the note, and keeps it without a new one`() async throws {
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60, note: SanitizedText("login"))
        let replaced = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60, note: SanitizedText("cart"))
        let kept = try await service.take(shop, for: Fixture.grantee("a"), seconds: 60)

        #expect(replaced.note?.text == "cart" && kept.note?.text == "cart")
    }

    @Test(arguments: [0, -1, LeaseSpec.maxSeconds + 1]) func `the length of a lease is limited`(seconds: Int) async {
        await #expect(throws: AccessError.self) { try await service.take(shop, for: Self.user(1), seconds: seconds) }
    }

    /// Runs the service with a lease of ten seconds and a client that waits for it.
    private func waiter(seconds: Int) async throws -> Task<Lease, any Error> {
        _ = try await service.take(shop, for: Fixture.grantee("a"), seconds: 10)
        let task = Task { [service, shop] in
            try await withThrowingTaskGroup(of: Lease?.self) { group in
                group.addTask {
                    try await service.run()
                    return nil
                }
                group.addTask {
                    try await service.take(shop, for: Fixture.grantee("b"), seconds: 5, wait: .seconds(seconds))
                }
                defer { group.cancelAll() }
                guard let lease = try await group.next() ?? nil else { throw CancellationError() }
                return lease
            }
        }
        // The service sleeps until the end of the lease, and the client for its wait time.
        await clock.waitForSleepers(2)
        return task
    }
}

/// A clock that runs on during a suspend of the system, while its timers stand still, as on Linux.
private final class SuspendableClock: Clock, Sendable {
    typealias Duration = Swift.Duration

    private let clock: ManualClock
    private let suspended = Mutex(Duration.zero)

    init(_ clock: ManualClock) { self.clock = clock }

    var now: ManualClock.Instant { clock.now.advanced(by: suspended.withLock { $0 }) }
    var minimumResolution: Duration { clock.minimumResolution }

    func suspend(for duration: Duration) { suspended.withLock { $0 += duration } }

    func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
        try await clock.sleep(until: clock.now.advanced(by: now.duration(to: deadline)), tolerance: tolerance)
    }
}
