import Model
import Samples
import ServiceLifecycle
import SystemIO
import TestSupport
import Testing

@testable import AccessControl
@testable import Team

@Suite(.timeLimit(.minutes(1))) struct TeamClaimsTests {
    private let clock = ManualClock()
    private let inner: InMemoryTeamStore

    init() { inner = InMemoryTeamStore(clock: clock) }

    /// One broker's part in the claims.
    private struct Broker: Sendable {
        let name: String
        let store: TestStore
        let session: TeamSession
        let claims: TeamClaims

        func claim(_ target: LeaseTarget, of endpoint: String = "shop") async throws {
            try await claims.acquire(try Values.leaseClaim(on: target, of: endpoint))
        }
    }

    private func makeBroker(_ name: String) throws -> Broker {
        let store = TestStore(inner)
        let session = TeamSession(store: store, clock: clock, logger: Values.logger)
        let claims = TeamClaims(host: try Values.host(name), session: session)
        return Broker(name: name, store: store, session: session, claims: claims)
    }

    /// Runs brokers of hosts that are members, until each has a lease in the registry.
    private func withBrokers(_ names: [String], _ body: @Sendable ([Broker]) async throws -> Void) async throws {
        let brokers = try names.map { try makeBroker($0) }
        for name in names { try await TeamAuthority(store: inner).add(try Values.member(name)) }
        try await withRunning(brokers.flatMap { [$0.session, $0.claims] as [any Service] }) {
            try await eventually("all have a lease") { brokers.allSatisfy { $0.session.currentLease != nil } }
            try await body(brokers)
        }
    }

    private func phone(_ number: Int = 1) throws -> LeaseTarget { .device(try Values.udid(number)) }

    private func entry(of target: LeaseTarget) async throws -> TeamClaim? {
        let value = try await inner.list(TeamKey.claim(target).text).entries.first?.value
        return value.flatMap { TeamCoding.value(TeamClaim.self, from: $0) }
    }

    private func owner(of target: LeaseTarget) async throws -> String? { try await entry(of: target)?.host.text }

    @Test func `a claim refuses other hosts until it is released`() async throws {
        try await withBrokers(["lab1", "lab2"]) { brokers in
            let target = try phone()
            try await brokers[0].claim(target)
            let entry = try #require(try await entry(of: target))
            #expect(entry.endpoint == (try Values.id("shop.lab1")) && entry.lease == "l1" && entry.seconds == 60)
            #expect(entry.holderKey == "uid:1000" && entry.device == target.device)

            let error = await #expect(throws: LeaseClaimError.self) { try await brokers[1].claim(target) }
            #expect(error == .held(entry))
            brokers[0].claims.release(target)
            try await eventually("the claim is deleted") { try await self.entry(of: target) == nil }

            try await brokers[1].claim(target)
            #expect(try await owner(of: target) == "lab2")
        }
    }

    @Test func `a held claim gets the content of the next request, and is held meanwhile`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            try await brokers[0].claim(phone())
            brokers[0].store.hold(behind: AsyncLatch())
            async let second: Void = brokers[0].claim(phone(), of: "till")
            try await eventually("the replacement waits") { brokers[0].store.heldCalls == 1 }
            #expect(brokers[0].claims.isHeld(try phone()))
            brokers[0].store.release()
            try await second

            #expect(try await entry(of: phone())?.endpoint == (try Values.id("till.lab1")))
            brokers[0].claims.release(try phone())
            #expect(!brokers[0].claims.isHeld(try phone()))
            try await eventually("the claim is deleted") { try await owner(of: phone()) == nil }
        }
    }

    @Test func `a second request for a claim that is being created is refused`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            let gate = AsyncLatch()
            brokers[0].store.hold(behind: gate)
            async let first: Void = brokers[0].claim(phone())
            try await eventually("the claim waits") { brokers[0].store.heldCalls == 1 }
            await #expect(throws: LeaseClaimError.self) { try await brokers[0].claim(phone(), of: "till") }
            gate.open()

            try await first
            #expect(try await entry(of: phone())?.endpoint == (try Values.id("shop.lab1")))
        }
    }

    @Test func `a replacement under a lease that the registry has ended ends all claims at once`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            try await brokers[0].claim(phone())
            var ends = brokers[0].claims.ends.makeAsyncIterator()
            let lease = try #require(brokers[0].session.currentLease)
            try await inner.revokeSessionLease(lease.id)
            await #expect(throws: LeaseClaimError.self) { try await brokers[0].claim(phone(), of: "till") }

            // The clock stands still, so only the report ends the lease of the session.
            try await eventually("there is a new lease") {
                brokers[0].session.currentLease.map { $0 != lease } ?? false
            }
            #expect(await ends.next() == [try phone()])
        }
    }

    @Test func `a late deletion leaves the next claim of the same host`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            try await brokers[0].claim(phone())
            brokers[0].store.hold(behind: AsyncLatch())
            brokers[0].claims.release(try phone())
            try await eventually("the deletion waits") { brokers[0].store.heldCalls == 1 }
            async let second: Void = brokers[0].claim(phone())
            try await eventually("the claim waits") { brokers[0].store.heldCalls == 2 }
            brokers[0].store.release()

            try await second
            #expect(brokers[0].claims.isHeld(try phone()))
            #expect(try await owner(of: phone()) == "lab1")
        }
    }

    @Test func `1,000 targets with 10 contenders each have exactly one winner each`() async throws {
        let names = (0..<10).map { "lab\($0)" }
        try await withBrokers(names) { brokers in
            for number in 0..<1_000 {
                let target = try phone(number)
                let winners = await withTaskGroup(of: String?.self) { group in
                    for broker in brokers {
                        group.addTask { (try? await broker.claim(target)).map { broker.name } }
                    }
                    return await group.compactMap(\.self).reduce(into: []) { $0.append($1) }
                }
                #expect(winners.count == 1)
                #expect(try await owner(of: target) == winners.first)
            }
        }
    }

    @Test func `an endpoint without a host is one of this host`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            let shop = LeaseTarget.endpoint(try Values.id("shop"))
            try await brokers[0].claim(shop)

            #expect(brokers[0].claims.isHeld(shop))
            #expect(try await owner(of: .endpoint(Values.id("shop.lab1"))) == "lab1")
        }
    }

    @Test func `a claim that is too large for the other hosts is not granted`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            let note = SanitizedText(String(repeating: "x", count: 4_096), limit: .max)
            let claim = try Values.leaseClaim(on: phone(), note: note)
            await #expect(throws: LeaseClaimError.self) { try await brokers[0].claims.acquire(claim) }

            #expect(try await owner(of: phone()) == nil)
        }
    }

    @Test func `without a lease in the registry no claim is granted`() async throws {
        let broker = try makeBroker("lab1")
        broker.store.fail(with: TestStore.unreachable)
        try await withRunning([broker.session, broker.claims]) {
            await clock.waitForSleepers()
            let error = await #expect(throws: LeaseClaimError.self) { try await broker.claim(phone()) }
            #expect(error == .unreachable(reason: TestStore.unreachable.description))
        }
    }

    @Test func `all claims end before the registry could end them`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            try await brokers[0].claim(phone())
            var ends = brokers[0].claims.ends.makeAsyncIterator()
            brokers[0].store.fail(with: TestStore.unreachable)
            for _ in 0..<8 {
                await clock.waitForSleepers(2)
                clock.advance(by: .seconds(1))
            }
            #expect(brokers[0].claims.isHeld(try phone()))

            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(1))

            #expect(!brokers[0].claims.isHeld(try phone()))
            #expect(await ends.next() == [try phone()])
            // The registry still has the claim, so no other host has got it yet.
            #expect(try await owner(of: phone()) == "lab1")
        }
    }

    @Test func `a claim of an ended lease is not held under the next one`() async throws {
        try await withBrokers(["lab1", "lab2"]) { brokers in
            try await brokers[0].claim(phone())
            var ends = brokers[0].claims.ends.makeAsyncIterator()
            let lease = try #require(brokers[0].session.currentLease)
            try await inner.revokeSessionLease(lease.id)
            brokers[0].session.reportEnd(of: lease)
            #expect(await ends.next() == [try phone()])
            try await eventually("there is a new lease") { brokers[0].session.currentLease != nil }

            #expect(!brokers[0].claims.isHeld(try phone()))
            try await brokers[1].claim(phone())
        }
    }

    @Test func `a claim that is written when the lease may have ended is not held`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            brokers[0].store.hold(behind: AsyncLatch())
            async let isClaimed = (try? brokers[0].claim(phone())) != nil
            try await eventually("the write waits") { brokers[0].store.heldCalls >= 1 }
            let states = brokers[0].session.changes()
            clock.advance(by: .seconds(9))
            _ = await states.first { $0 == .absent }
            brokers[0].store.release()

            #expect(await isClaimed == false)
        }
    }

    @Test func `a write without an answer is undone`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            brokers[0].store.loseNextAnswer()
            await #expect(throws: LeaseClaimError.self) { try await brokers[0].claim(phone()) }

            try await eventually("the claim is deleted") { try await owner(of: phone()) == nil }
        }
    }

    @Test func `a deletion is repeated until it succeeds`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            try await brokers[0].claim(phone())
            brokers[0].store.fail(with: TestStore.unreachable)
            brokers[0].claims.release(try phone())
            await clock.waitForSleepers(3)
            brokers[0].store.fail(with: nil)
            clock.advance(by: .milliseconds(100))

            try await eventually("the claim is deleted") { try await owner(of: phone()) == nil }
        }
    }

    @Test func `a restarted broker replaces the claim of its crashed process`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            let old = try await inner.grantSessionLease(timeToLive: .seconds(10))
            let key = TeamKey.claim(try phone())
            let value = try TeamCoding.bytes(of: try Values.claim("lab1", of: "shop.lab1"), for: key)
            _ = try await inner.write([.put(key: key.text, value: value, sessionLease: old)], if: nil)

            try await brokers[0].claim(phone())

            try await inner.revokeSessionLease(old)
            #expect(brokers[0].claims.isHeld(try phone()))
            #expect(try await owner(of: phone()) == "lab1")
        }
    }

    @Test func `the claim of a removed host is replaced`() async throws {
        try await withBrokers(["lab1", "lab2"]) { brokers in
            try await brokers[1].claim(phone())
            try await TeamAuthority(store: inner).remove(try Values.host("lab2"))

            try await brokers[0].claim(phone())

            #expect(try await owner(of: phone()) == "lab1")
        }
    }

    /// Writes a claim without a lease in the registry, as a host that was taken over can do.
    private func forge(_ claim: TeamClaim, of target: LeaseTarget) async throws {
        let key = TeamKey.claim(target)
        let value = try TeamCoding.bytes(of: claim, for: key)
        _ = try await inner.write([.put(key: key.text, value: value, sessionLease: nil)], if: nil)
    }

    @Test func `a claim that another host wrote in the name of this one is deleted, and its own claims stay`()
        async throws
    {
        try await withBrokers(["lab1", "lab2"]) { brokers in
            try await brokers[0].claim(phone(1))
            try await brokers[1].claim(phone(2))
            try await forge(try Values.claim("lab1", of: "shop.lab1"), of: phone(3))
            let lists = brokers[0].store.record.lists
            for number in 1...2 { brokers[0].claims.check(try phone(number)) }
            try await eventually("both are read") { brokers[0].store.record.lists == lists + 2 }
            // The checks run one after another.
            brokers[0].claims.check(try phone(3))

            try await eventually("the forged claim is deleted") { try await owner(of: phone(3)) == nil }
            #expect(try await owner(of: phone(1)) == "lab1")
            #expect(try await owner(of: phone(2)) == "lab2")
        }
    }

    @Test func `a check during an attempt to acquire leaves the claim of that attempt`() async throws {
        try await withBrokers(["lab1"]) { brokers in
            let (gate, openGate) = (AsyncLatch(), AsyncLatch())
            openGate.open()
            brokers[0].store.hold(behind: gate)
            async let first: Void = brokers[0].claim(phone(1))
            try await eventually("the claim waits") { brokers[0].store.heldCalls == 1 }
            // Later writes do not wait.
            brokers[0].store.hold(behind: openGate)
            brokers[0].claims.check(try phone(1))
            // The checks run one after another, so that of the claim would run among these.
            for number in 2...5 {
                try await forge(try Values.claim("lab1", of: "shop.lab1"), of: phone(number))
                brokers[0].claims.check(try phone(number))
                try await eventually("the forged claim is deleted") { try await owner(of: phone(number)) == nil }
            }
            #expect(brokers[0].store.record.lists == 4)
            gate.open()
            try await first
            try await eventually("the claim is read") { brokers[0].store.record.lists == 5 }
            try await forge(try Values.claim("lab1", of: "shop.lab1"), of: phone(2))
            brokers[0].claims.check(try phone(2))

            try await eventually("the forged claim is deleted") { try await owner(of: phone(2)) == nil }
            #expect(brokers[0].claims.isHeld(try phone(1)))
            #expect(try await owner(of: phone(1)) == "lab1")
        }
    }

    @Test func `a claim that was overwritten with an equal one ends with the release`() async throws {
        try await withBrokers(["lab1", "lab2"]) { brokers in
            try await brokers[0].claim(phone())
            try await forge(try Values.claim("lab1", of: "shop.lab1"), of: phone())
            brokers[0].claims.release(try phone())

            try await eventually("the forged claim is deleted") { try await owner(of: phone()) == nil }
            try await brokers[1].claim(phone())
        }
    }

    @Test func `a graceful stop ends all claims`() async throws {
        let broker = try makeBroker("lab1")
        try await withRunning([broker.session, broker.claims]) {
            try await eventually("there is a lease") { broker.session.currentLease != nil }
            try await broker.claim(phone())
        }
        let ended = await broker.claims.ends.first { _ in true }
        #expect(ended == [try phone()])
        #expect(try await owner(of: phone()) == nil)
    }

    @Test func `a claim that another host deleted or replaced does not prevent the next lease`() async throws {
        try await withBrokers(["lab1", "lab2"]) { brokers in
            let key = TeamKey.claim(try phone()).text
            try await brokers[0].claim(phone())
            _ = try await inner.write([.delete(key: key)], if: nil)

            try await brokers[0].claim(phone(), of: "till")
            #expect(try await entry(of: phone())?.endpoint == (try Values.id("till.lab1")))
            let foreign = try Values.claim("lab2", of: "shop.lab2")
            try await forge(foreign, of: phone())
            let error = await #expect(throws: LeaseClaimError.self) { try await brokers[0].claim(phone()) }
            #expect(error == .held(foreign))

            _ = try await inner.write([.delete(key: key)], if: nil)
            try await brokers[0].claim(phone())
            #expect(try await owner(of: phone()) == "lab1")
        }
    }

    @Test func `a call under a claim that lapsed during a pause of the process is refused before its end is reported`()
        async throws
    {
        try await withBrokers(["lab1"]) { brokers in
            let leases = LeaseService(claims: brokers[0].claims)
            let phone = Endpoint.sample(kind: .mcp, location: Endpoint.Location(udid: try Values.udid(1)))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await leases.run() }
                defer { group.cancelAll() }
                let lease = try await leases.take(phone, for: .broker, seconds: 60)
                leases.endCall(try leases.beginCall(of: phone, by: Principal.broker.leaseHolder))

                // No `LostClaimConsumer` runs, so the end of the claim is never reported.
                clock.advance(by: .seconds(9))

                let error = #expect(throws: AccessError.self) {
                    try leases.beginCall(of: phone, by: Principal.broker.leaseHolder)
                }
                #expect(error?.description.hasPrefix("your lease \(lease.id) ended at 2") == true)
                #expect(error?.description.contains("because \(LeaseConflict.lostRegistry)") == true)
            }
        }
    }
}
