import Crypto
import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

@testable import AccessControl

@Suite struct InviteTests {
    @Test func `an invite gives one grant, and is spent`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (invite, token) = try await store.invite(
                InviteTerms(Bench.reader),
                by: Bench.owner,
                from: Bench.socket
            )
            let (grant, secret) = try await store.redeem(token, for: Bench.client("a"), from: Bench.loopback)

            #expect(grant.permissions == Bench.reader && grant.invite == invite.id && grant.name.text == "a")
            #expect(try await store.authenticate(secret, from: Bench.loopback).id == grant.id)
            #expect(await store.invites.first?.end == .spent)
            // A thousand times more: refused, and nothing changes.
            let before = await store.ledger
            for attempt in 0..<1_000 {
                await #expect(throws: AccessError.self) {
                    try await store.redeem(token, for: Bench.client("b\(attempt)"), from: Bench.loopback)
                }
            }
            let after = await store.ledger
            #expect(before.invites == after.invites && before.grants == after.grants)
            #expect(try Bench.audit(in: scratch).count < 20)
        }
    }

    @Test func `the same client gets the same grant again for a minute, and nobody else does`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (_, invite) = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)
            let (_, first) = try await store.redeem(invite, for: Bench.client("a"), from: Bench.loopback)

            clock.pass(59)
            let (_, again) = try await store.redeem(invite, for: Bench.client("a"), from: Bench.loopback)
            #expect(again.reveal() == first.reveal())
            await #expect(throws: AccessError.refused) {
                try await store.redeem(invite, for: Bench.client("b"), from: Bench.loopback)
            }
            clock.pass(1)
            await #expect(throws: AccessError.refused) {
                try await store.redeem(invite, for: Bench.client("a"), from: Bench.loopback)
            }
            #expect(await store.grants.count == 1)
        }
    }

    @Test func `a grant that was revoked or rotated is not given again`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (_, one) = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)
            let (grant, _) = try await store.redeem(one, for: Bench.client("a"), from: Bench.loopback)
            try await store.revoke(.one(grant.id), by: Bench.owner, from: Bench.socket)
            let (_, two) = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)
            let (_, secret) = try await store.redeem(two, for: Bench.client("a"), from: Bench.loopback)
            _ = try await store.rotate(secret, from: Bench.loopback)

            for invite in [one, two] {
                await #expect(throws: AccessError.refused) {
                    try await store.redeem(invite, for: Bench.client("a"), from: Bench.loopback)
                }
            }
        }
    }

    @Test func `an invite is good until its last second and not after it`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (_, early) = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)
            let (_, late) = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)

            clock.pass(599)
            _ = try await store.redeem(early, for: Bench.client("a"), from: Bench.loopback)
            clock.pass(1)
            await #expect(throws: AccessError.refused) {
                try await store.redeem(late, for: Bench.client("a"), from: Bench.loopback)
            }
        }
    }

    @Test func `five wrong secrets burn an invite, restarts or not`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Bench.store(in: scratch, clock: clock)
            let (_, invite) = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)
            func guess() async {
                await #expect(throws: AccessError.refused) {
                    try await store.redeem(Bench.forged(invite), for: Bench.client("x"), from: Bench.loopback)
                }
            }
            for _ in 0..<4 { await guess() }
            try await store.close()
            store = try Bench.store(in: scratch, clock: clock)
            #expect(await store.invites.first?.wrong == 4)
            await guess()

            #expect(await store.invites.first?.end == .burnt)
            await #expect(throws: AccessError.refused) {
                try await store.redeem(invite, for: Bench.client("a"), from: Bench.loopback)
            }
            #expect(try Bench.audit(in: scratch).last { $0.event.action == .burnt }?.event.isAlert == true)
        }
    }

    @Test func `an invite for three gives exactly three grants to fifty racers`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let terms = InviteTerms(Bench.reader, uses: 3)
            let (_, invite) = try await store.invite(terms, by: Bench.owner, from: Bench.socket)

            let granted = await withTaskGroup(of: Bool.self) { group in
                for racer in 0..<50 {
                    group.addTask {
                        (try? await store.redeem(invite, for: Bench.client("\(racer)"), from: Bench.loopback)) != nil
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }

            #expect(granted == 3)
            #expect(await store.grants.count == 3)
        }
    }

    @Test func `asking for more than the invite gives is refused and does not spend it`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let shop = try #require(EndpointID("shop"))
            let bank = try #require(EndpointID("bank"))
            let terms = InviteTerms(Permissions([.endpointCall, .admin], on: .endpoints([shop])))
            let (_, invite) = try await store.invite(terms, by: Bench.owner, from: Bench.socket)
            func redeem(_ permissions: Permissions, _ binding: GrantBinding = .bearer) async throws {
                let request = Redemption(
                    client: Data(repeating: 1, count: 32),
                    name: SanitizedText("a"),
                    permissions: permissions,
                    binding: binding
                )
                _ = try await store.redeem(invite, for: request, from: Bench.socket)
            }

            for wide in [
                Permissions([.endpointCall], on: .endpoints([bank])), Permissions([.endpointCall], on: .all),
                Permissions([.tunnelOpen], on: .endpoints([shop])), Permissions([.admin], on: .endpoints([shop])),
            ] {
                await #expect(throws: AccessError.self) { try await redeem(wide) }
            }
            #expect(await store.invites.first?.used == 0)
            try await redeem(Permissions([.endpointCall], on: .endpoints([shop])))
            #expect(await store.invites.first?.used == 1)
        }
    }

    @Test(arguments: [
        InviteTerms(Bench.reader, uses: 0), InviteTerms(Bench.reader, uses: 101),
        InviteTerms(Bench.reader, lifetime: 0), InviteTerms(Bench.reader, lifetime: 86_401),
        InviteTerms(Bench.reader, grantLifetime: 2_592_001), InviteTerms(Bench.reader, grantIdle: 0),
        InviteTerms(Permissions([.admin], on: .all), uses: 2), InviteTerms(Permissions([], on: .all)),
    ])
    func `terms out of their range are refused`(terms: InviteTerms) async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            await #expect(throws: AccessError.self) {
                try await store.invite(terms, by: Bench.owner, from: Bench.socket)
            }
            #expect(await store.invites.isEmpty)
        }
    }
}
