import FoundationEssentials
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

/// Leases of a phone that two hosts of a team reach.
@Suite(.timeLimit(.minutes(1))) struct TeamLeaseTests: PhoneLeaseSuite {
    private let clock = ManualClock()
    private let registry = FakeClaimRegistry()
    let phone = UDID.sample
    private let one: FakeHost
    private let two: FakeHost
    let shop: Endpoint
    var hosts: [FakeHost] { [one, two] }

    init() throws {
        shop = Fixture.endpoint("com.example.shop", udid: phone)
        one = try FakeHost("lab1", registry, clock)
        two = try FakeHost("lab2", registry, clock)
    }

    private func forgedClaim() throws -> TeamClaim {
        TeamClaim(
            host: "lab3",
            endpoint: shop.id,
            device: phone,
            holder: SanitizedText("user 0"),
            holderKey: "host:lab1/uid:1",
            note: nil,
            createdAt: Date(timeIntervalSince1970: 0)
        )
    }

    private func noClaims() async throws {
        try await eventually("the registry has no claim") { registry.claims.isEmpty }
    }

    @Test func `two hosts never lease one phone at the same time`() async throws {
        try await running {
            for _ in 0..<100 {
                async let first = try? one.service.take(shop, for: one.user(1), seconds: 60)
                async let second = try? two.service.take(shop, for: two.user(1), seconds: 60)
                let leases = [await first, await second]

                #expect(leases.compactMap { $0 }.count == 1)
                #expect(one.service.count + two.service.count == 1)
                for (host, lease) in zip([one, two], leases) {
                    if let lease { try host.service.end(lease.id, among: [shop], by: host.user(1)) }
                }
                try await noClaims()
            }
        }
    }

    @Test func `a refusal names the holder and its host`() async throws {
        try await running {
            _ = try await one.service.take(shop, for: one.user(1), seconds: 60)

            let error = await #expect(throws: AccessError.self) {
                try await two.service.take(shop, for: two.user(2), seconds: 60)
            }

            #expect(error?.description == "\(phone) is leased to \"user 1\" on the host lab1")
        }
    }

    @Test func `a lease of another host refuses the calls and the connections of every client`() async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)

            #expect(mayCall(one) && !mayCall(one, 2) && !mayCall(two) && !mayCall(two, 2))
            #expect(mayConnect(one) && !mayConnect(one, 2) && !mayConnect(two) && !mayConnect(two, 2))
            #expect(two.service.mayHaveLeases)

            try one.service.end(lease.id, among: [], by: one.user(1))
            try await noClaims()
            #expect(mayCall(one, 2) && mayCall(two) && mayConnect(two) && !two.service.mayHaveLeases)
        }
    }

    @Test func `a client that waits gets the lease when the other host ends it`() async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)
            async let next = two.service.take(shop, for: two.user(2), seconds: 30, wait: .seconds(50))
            // The end of the first lease, and the wait time of the second client.
            await clock.waitForSleepers(2)

            try one.service.end(lease.id, among: [], by: one.user(1))

            _ = try await next
            #expect(!mayCall(one) && mayCall(two, 2))
        }
    }

    @Test func `after the wait time, the error names the holder on the other host`() async throws {
        try await running {
            _ = try await one.service.take(shop, for: one.user(1), seconds: 60)
            let waiting = Task { [two, shop] in
                try await two.service.take(shop, for: two.user(2), seconds: 30, wait: .seconds(9))
            }
            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(9))

            let error = await #expect(throws: AccessError.self) { try await waiting.value }

            #expect(error?.description.hasSuffix("is leased to \"user 1\" on the host lab1") == true)
            #expect(registry.claims.values.map(\.host) == [one.name])
        }
    }

    @Test func `clients of one host wait in their order, and the claim names the current holder`() async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)
            async let next = one.service.take(shop, for: one.user(2), seconds: 60, wait: .seconds(50))
            await clock.waitForSleepers(2)

            try one.service.end(lease.id, among: [], by: one.user(1))

            _ = try await next
            try await eventually("the claim names the holder") {
                registry.claims[.device(phone)]?.holder.text == "user 2"
            }
        }
    }

    @Test func `a lost registry ends the lease, and a renewal names the reason`() async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)

            one.service.endClaimed([.device(phone)], because: "the registry of the team was not reachable for 9 s")

            #expect(one.service.count == 0)
            let error = await #expect(throws: AccessError.self) {
                try await one.service.take(shop, for: one.user(1), seconds: 60, renewing: lease.id)
            }
            #expect(error == .notFound("lease l1 has ended: the registry of the team was not reachable for 9 s"))
            _ = try await one.service.take(shop, for: one.user(1), seconds: 60)
        }
    }

    @Test func `without the registry, no phone is leased, and calls without a lease go on`() async throws {
        try await running {
            registry.set(.unreachable)

            for wait in [Duration.zero, .seconds(50)] {
                let error = await #expect(throws: AccessError.self) {
                    try await one.service.take(shop, for: one.user(1), seconds: 60, wait: wait)
                }
                #expect(error == .claimNotStored(phone.text, reason: "no server answers"))
            }
            #expect(mayCall(one) && mayConnect(one) && one.service.count == 0)
            // Only this host leases an endpoint without a phone.
            let simulator = Fixture.endpoint("com.example.sim")
            _ = try await one.service.take(simulator, for: one.user(1), seconds: 60)
        }
    }

    @Test func `a registry that does not answer refuses the lease after 10 seconds`() async throws {
        try await running {
            registry.set(.silent)
            let request = Task { [one, shop] in try await one.service.take(shop, for: one.user(1), seconds: 60) }
            await clock.waitForSleepers(1)
            clock.advance(by: .seconds(10))

            let error = await #expect(throws: AccessError.self) { try await request.value }

            #expect(error == .claimNotStored(phone.text, reason: "no answer in time"))
            #expect(mayCall(one))
        }
    }

    @Test func `a call and a connection under a lapsed claim are refused before its end is reported`() async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)
            #expect(mayCall(one) && mayConnect(one))

            registry.lapse(one.name)

            let call = #expect(throws: AccessError.self) {
                try one.service.beginCall(of: shop, by: one.user(1).leaseHolder)
            }
            #expect(!mayConnect(one) && one.service.count == 1)
            // Another client is refused because of the lease, as before.
            let other = #expect(throws: AccessError.self) {
                try one.service.beginCall(of: shop, by: one.user(2).leaseHolder)
            }
            #expect(other?.description.contains("is leased to \"user 1\" until ") == true)

            one.service.endClaimed([.device(phone)], because: LeaseConflict.lostRegistry)
            let renewal = await #expect(throws: AccessError.self) {
                try await one.service.take(shop, for: one.user(1), seconds: 60, renewing: lease.id)
            }
            #expect(renewal?.description.hasPrefix("lease \(lease.id) has ended: the host lost its connection") == true)
            #expect(call?.description.hasPrefix("your lease \(lease.id) ended at 2") == true)
            #expect(call?.description.contains("because the host lost its connection") == true)
        }
    }

    @Test func `a claim that is created after its client has left is deleted, also after the loss of another claim`()
        async throws
    {
        try await running {
            let latch = AsyncLatch()
            registry.set(.slow(latch))
            let request = Task { [one, shop] in try await one.service.take(shop, for: one.user(1), seconds: 60) }
            try await eventually("the claim is requested") { registry.requests == 1 }
            let other: UDID = "00008101-000123456789ABCE"
            one.service.endClaimed([.device(other)], because: LeaseConflict.lostRegistry)
            request.cancel()
            await #expect(throws: CancellationError.self) { try await request.value }
            latch.open()
            try await eventually("the claim is created") { registry.acquisitions == 1 }

            try await noClaims()
            _ = try await two.service.take(shop, for: two.user(1), seconds: 60)
        }
    }

    @Test func `a forged claim gives nothing, and only refuses`() async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)

            registry.force(try forgedClaim(), on: .device(phone))

            try await eventually("the lease has ended") { one.service.count == 0 }
            let error = await #expect(throws: AccessError.self) {
                try await one.service.take(shop, for: one.user(1), seconds: 60, renewing: lease.id)
            }
            #expect(error?.description.hasSuffix("the host lab3 claimed the phone in the registry of the team") == true)
            #expect(!mayCall(one) && !mayCall(two) && !mayConnect(one) && !mayConnect(two))
            // A client of that host holds no lease here, and neither does the client that the claim names.
            let client = MemberClient(host: "lab3", caller: nil)
            let actor = AuditActor.member(host: client.host, client: client.name)
            let member = Principal(.member(client), source: .remote(address: "192.0.2.1"), actor: actor, host: one.name)
            #expect(throws: AccessError.self) { try one.service.beginCall(of: shop, by: member.leaseHolder) }
            #expect(one.service.leases(of: [shop], for: member).isEmpty)

            registry.force(nil, on: .device(phone))
            #expect(mayCall(one, 2) && mayConnect(two))
            _ = try await one.service.take(shop, for: one.user(2), seconds: 60)
        }
    }

    @Test func `a claim that somebody deleted is not taken from its holder unseen`() async throws {
        try await running {
            _ = try await one.service.take(shop, for: one.user(1), seconds: 60)
            registry.force(nil, on: .device(phone))
            _ = try await two.service.take(shop, for: two.user(2), seconds: 60)

            try await eventually("the first lease has ended") { one.service.count == 0 }
            #expect(!mayCall(one) && mayCall(two, 2))
        }
    }

    @Test func `lists show the leases of other hosts, and those of the client there as its own`() async throws {
        try await running {
            let caller = TeamCaller(
                holder: one.user(1).leaseHolder.key,
                name: SanitizedText("user 1"),
                isAgent: false,
                permissions: Fixture.reader
            )
            let client = MemberClient(host: one.name, caller: caller)
            let actor = AuditActor.member(host: one.name, client: client.name)
            let member = Principal(.member(client), source: .remote(address: "192.0.2.1"), actor: actor, host: two.name)
            _ = try await two.service.take(shop, for: member, seconds: 60, note: SanitizedText("login"))
            let remote = shop.on(two.name)

            let lease = try #require(one.service.leases(of: [shop, remote], for: one.user(1)).first)
            #expect(lease.id == "l1.lab2" && lease.endpoint == remote.id && lease.isOwn && lease.device == phone)
            #expect(lease.holder.text == "user 1 on lab1" && lease.note?.text == "login" && lease.seconds == 60)
            #expect(lease.expiresAt == nil && lease.waiting == nil)
            let listed = one.service.withLeases([shop, remote], for: one.user(2))
            #expect(listed.map(\.lease?.id) == ["l1.lab2", "l1.lab2"] && listed.map(\.lease?.isOwn) == [false, false])
            #expect(two.service.leases(of: [shop], for: two.user(1)).map(\.id) == ["l1"])
        }
    }

    @Test func `the removal of a host ends the leases of its clients`() async throws {
        let simulator = Fixture.endpoint("com.example.sim")
        let client = MemberClient(host: two.name, caller: nil)
        let actor = AuditActor.member(host: two.name, client: client.name)
        let member = Principal(.member(client), source: .remote(address: "192.0.2.1"), actor: actor, host: one.name)
        let other = Fixture.endpoint("com.example.other")
        _ = try await one.service.take(simulator, for: member, seconds: 60)
        _ = try await one.service.take(other, for: one.user(1), seconds: 60)

        one.service.endLeases(ofClientsOn: two.name)

        #expect(one.service.leases(of: [simulator, other], for: one.user(1)).map(\.endpoint) == [other.id])
    }

    @Test func `an endpoint of another host is never leased here`() async throws {
        let error = await #expect(throws: AccessError.self) {
            try await one.service.take(shop.on(two.name), for: one.user(1), seconds: 60)
        }
        #expect(error?.description.contains("belongs to the host lab2") == true)
    }

    @Test func `a lease of an app on Wi-Fi claims the phone, and is refused while another host has the phone`()
        async throws
    {
        let wireless = Fixture.endpoint("com.example.shop", at: "wifi")
        let linked = try FakeHost("lab4", registry, clock, phones: [wireless.id: phone])
        try await running {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await linked.service.run() }
                defer { group.cancelAll() }
                let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)
                await #expect(throws: AccessError.self) {
                    try await linked.service.take(wireless, for: linked.user(1), seconds: 60)
                }
                #expect(throws: AccessError.self) {
                    try linked.service.beginCall(of: wireless, by: linked.user(1).leaseHolder)
                }
                try one.service.end(lease.id, among: [], by: one.user(1))
                _ = try await linked.service.take(wireless, for: linked.user(1), seconds: 60, wait: .seconds(50))

                #expect(registry.claims[.device(phone)]?.host == linked.name)
                #expect(!mayCall(one))
            }
        }
    }
}
