import Crypto
import FoundationEssentials
import Glibc
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct InviteTests {
    private let scratch = ScratchFolder.current

    @Test func `redeeming an invite gives one grant and spends the invite`() async throws {
        let store = try Fixture.store(in: scratch)
        let (invite, token) = try await store.invites.create()
        let (grant, secret) = try await store.invites.redeem(token, as: "a")

        #expect(grant.permissions == Fixture.reader && grant.invite == invite.id && grant.name.text == "a")
        #expect(try await store.grants.authenticate(secret).id == grant.id)
        #expect(await store.invites.list.first?.endReason == .spent)
        // A thousand further attempts are rejected and change nothing.
        let before = await store.state
        for attempt in 0..<1_000 {
            await #expect(throws: AccessError.self) { try await store.invites.redeem(token, as: "b\(attempt)") }
        }
        let after = await store.state
        #expect(before.invites == after.invites && before.grants == after.grants)
        #expect(try Fixture.audit(in: scratch).count < 20)
    }

    @Test func `the same client gets the same grant again for a minute, and other clients do not`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, invite) = try await store.invites.create()
        let (_, first) = try await store.invites.redeem(invite, as: "a")

        clock.pass(59)
        let (_, again) = try await store.invites.redeem(invite, as: "a")
        #expect(again.reveal() == first.reveal())
        await #expect(throws: AccessError.self) { try await store.invites.redeem(invite, as: "b") }
        clock.pass(1)
        await #expect(throws: AccessError.self) { try await store.invites.redeem(invite, as: "a") }
        #expect(await store.grants.list.count == 1)
    }

    @Test func `a repeated redemption does not return a revoked grant`() async throws {
        let store = try Fixture.store(in: scratch)
        let (_, invite) = try await store.invites.create()
        let (grant, _) = try await store.invites.redeem(invite, as: "a")
        try await store.grants.revoke(grant.id)

        await #expect(throws: AccessError.self) { try await store.invites.redeem(invite, as: "a") }
    }

    @Test func `an invite that has ended says when and why to a client with the right secret only`() async throws {
        let clock = TestClock(wall: 1_800_000_000_000)
        let store = try Fixture.store(in: scratch, clock: clock)
        var invites: [Token] = []
        for _ in 0..<4 {
            let spec = InviteSpec(Fixture.reader)
            invites.append(try await store.invites.create(spec).1)
        }
        let (used, late, revoked, locked) = (invites[0], invites[1], invites[2], invites[3])
        let (grant, _) = try await store.invites.redeem(used, as: "a")
        try await store.grants.revoke(revoked.id)
        for _ in 0..<5 {
            _ = try? await store.invites.redeem(Fixture.forged(locked), as: "x", from: Fixture.socket)
        }
        clock.pass(600)
        func error(_ invite: Token) async -> AccessError? {
            await #expect(throws: AccessError.self) { try await store.invites.redeem(invite, as: "b") }
        }

        let time = LocalTime.text(of: Date(timeIntervalSince1970: 1_800_000_000))
        let use = "the invite \(used.id) was used by the grant \(grant.id) at \(time)"
        #expect(await error(used) == .inviteEnded(use))
        let end = LocalTime.text(of: Date(timeIntervalSince1970: 1_800_000_600))
        #expect(await error(late) == .inviteEnded("the invite \(late.id) expired at \(end)"))
        #expect(await error(revoked) == .inviteEnded("the invite \(revoked.id) was revoked"))
        #expect(await error(locked) == .inviteEnded("the invite \(locked.id) was locked after 5 wrong secrets"))
        for invite in invites { #expect(await error(Fixture.forged(invite)) == .refused) }
    }

    @Test func `an invite is valid until its last second`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, early) = try await store.invites.create()
        let (_, late) = try await store.invites.create()

        clock.pass(599)
        _ = try await store.invites.redeem(early, as: "a")
        clock.pass(1)
        await #expect(throws: AccessError.self) { try await store.invites.redeem(late, as: "a") }
    }

    @Test func `five wrong secrets burn an invite, even across restarts`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let (_, invite) = try await store.invites.create()
        func guess() async {
            await #expect(throws: AccessError.refused) {
                try await store.invites.redeem(Fixture.forged(invite), as: "x")
            }
        }
        for _ in 0..<4 { await guess() }
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)
        #expect(await store.invites.list.first?.failedAttempts == 4)
        await guess()

        #expect(await store.invites.list.first?.endReason == .burnt)
        await #expect(throws: AccessError.self) { try await store.invites.redeem(invite, as: "a") }
        #expect(try Fixture.audit(in: scratch).last { $0.event.action == .burnt }?.event.alert == true)
    }

    @Test func `an invite with three uses gives exactly three grants to fifty concurrent clients`() async throws {
        let store = try Fixture.store(in: scratch)
        let spec = InviteSpec(Fixture.reader, maxUses: 3)
        let (_, invite) = try await store.invites.create(spec)

        let granted = await withTaskGroup(of: Bool.self) { group in
            for racer in 0..<50 {
                group.addTask {
                    (try? await store.invites.redeem(invite, as: "\(racer)"))
                        != nil
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }

        #expect(granted == 3)
        #expect(await store.grants.list.count == 3)
    }

    @Test func `requesting more than the invite allows is rejected and does not spend it`() async throws {
        let store = try Fixture.store(in: scratch)
        let shop: EndpointID = "shop"
        let bank: EndpointID = "bank"
        let spec = InviteSpec(Permissions([.endpointCall, .admin], on: .endpoints([shop])))
        let (_, invite) = try await store.invites.create(spec)
        func redeem(_ permissions: Permissions) async throws {
            let redemption = RedemptionSpec(
                token: invite.reveal(),
                client: String(repeating: "1", count: 32),
                name: SanitizedText("a"),
                permissions: permissions
            )
            _ = try await store.invites.redeem(redemption, from: Fixture.socket)
        }

        for wide in [
            Permissions([.endpointCall], on: .endpoints([bank])), Permissions([.endpointCall], on: .all),
            Permissions([.tunnelOpen], on: .endpoints([shop])), Permissions([.admin], on: .endpoints([shop])),
        ] { await #expect(throws: AccessError.self) { try await redeem(wide) } }
        #expect(await store.invites.list.first?.useCount == 0)
        try await redeem(Permissions([.endpointCall], on: .endpoints([shop])))
        #expect(await store.invites.list.first?.useCount == 1)
    }

    @Test(arguments: [
        InviteSpec(Fixture.reader, maxUses: 0), InviteSpec(Fixture.reader, maxUses: 101),
        InviteSpec(Fixture.reader, lifetimeSeconds: 0), InviteSpec(Fixture.reader, lifetimeSeconds: 86_401),
        InviteSpec(Fixture.reader, grantLifetimeSeconds: 2_592_001), InviteSpec(Fixture.reader, grantIdleSeconds: 0),
        InviteSpec(Permissions([.admin], on: .all), maxUses: 2), InviteSpec(Permissions([], on: .all)),
    ])
    func `an invite with values out of range is rejected`(spec: InviteSpec) async throws {
        let store = try Fixture.store(in: scratch)
        await #expect(throws: AccessError.self) { try await store.invites.create(spec) }
        #expect(await store.invites.list.isEmpty)
    }

    @Test func `one grant creates 64 invites in an hour, and the invites of others do not count`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let inviting = Permissions([.registryRead, .inviteCreate], on: .all)
        var grants: [Grant] = []
        for name in ["one", "other"] {
            let spec = InviteSpec(inviting)
            let (_, invite) = try await store.invites.create(spec)
            grants.append(try await store.invites.redeem(invite, as: name, from: Fixture.socket).0)
        }
        func create(_ grant: Grant) async throws {
            let spec = InviteSpec(Permissions([.registryRead], on: .all), lifetimeSeconds: 1)
            _ = try await store.invites.create(spec, by: .grant(grant.id), from: Fixture.socket)
        }
        for _ in 0..<64 { try await create(grants[0]) }

        let error = await #expect(throws: AccessError.self) { try await create(grants[0]) }
        #expect(error?.description.contains("64 invites in an hour") == true)
        try await create(grants[1])

        clock.pass(3_600)
        try await create(grants[0])
    }
}
