import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct GrantTests {
    private let scratch = ScratchFolder.current
    private static let inviter = Permissions([.endpointCall, .inviteCreate], on: .bundles(["a", "b"]))

    @Test func `unknown, wrong, revoked, expired and idle tokens get the same error`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, expired) = try await store.grant(lifetime: 60, to: "expired")
        let (_, idle) = try await store.grant(idle: 60, to: "idle")
        clock.pass(60)
        let (revoked, revokedToken) = try await store.grant(to: "revoked")
        try await store.grants.revoke(revoked.id)
        let (_, good) = try await store.grant(to: "good")

        var words: Set<String> = []
        for token in [
            Token(random: .grant), Fixture.forged(good), revokedToken, expired, idle, Token(random: .invite),
        ] {
            let error = await #expect(throws: AccessError.refused) { try await store.grants.authenticate(token) }
            words.insert("\(String(describing: error))")
        }
        #expect(words.count == 1)
        _ = try await store.grants.authenticate(good)
        let reasons = try Fixture.audit(in: scratch).filter { $0.event.action == .refused }.compactMap(\.event.detail)
        #expect(
            reasons == [
                "unknown grant", "wrong secret", "revoked grant", "expired grant", "idle grant", "unknown grant",
            ]
        )
    }

    @Test func `use resets the idle timeout, and a restart does not`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let (_, token) = try await store.grant(idle: 100)
        for _ in 0..<5 {
            clock.pass(90)
            _ = try await store.grants.authenticate(token)
        }
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)
        clock.pass(99)
        _ = try await store.grants.authenticate(token)
        clock.pass(100)
        await #expect(throws: AccessError.refused) { try await store.grants.authenticate(token) }
    }

    @Test func `a grant bound to a user is rejected for other users and over TCP`() async throws {
        let store = try Fixture.store(in: scratch)
        let spec = InviteSpec(Fixture.reader, user: 1_001)
        let (_, invite) = try await store.invites.create(spec)
        await #expect(throws: AccessError.refused) {
            try await store.invites.redeem(invite, as: "a", from: .unix(uid: 1_002))
        }
        let (_, token) = try await store.invites.redeem(invite, as: "a", from: .unix(uid: 1_001))

        _ = try await store.grants.authenticate(token, from: .unix(uid: 1_001))
        for origin in [RequestSource.unix(uid: 1_002), Fixture.loopback] {
            await #expect(throws: AccessError.refused) { try await store.grants.authenticate(token, from: origin) }
        }
    }

    @Test func `a child grant never exceeds its parent's scopes, lifetime or endpoints`() async throws {
        let store = try Fixture.store(in: scratch)
        let (parent, _) = try await store.grant(Self.inviter, lifetime: 3_600)
        let wide = [
            InviteSpec(Permissions([.tunnelOpen], on: .bundles(["a"]))),
            InviteSpec(Permissions([.endpointCall], on: .bundles(["c"]))),
            InviteSpec(Permissions([.endpointCall], on: .all)),
            InviteSpec(Permissions([.endpointCall], on: .bundles(["a"])), grantLifetimeSeconds: 3_601),
        ]
        for spec in wide {
            await #expect(throws: AccessError.self) {
                try await store.invites.create(spec, by: .grant(parent.id), from: Fixture.loopback)
            }
        }
        let narrow = Permissions([.endpointCall], on: .bundles(["a"]))
        let (child, _) = try await store.child(of: parent, narrow)
        #expect(child.expiresAt <= parent.expiresAt)
        await #expect(throws: AccessError.self) { try await store.child(of: child, narrow) }
    }

    @Test func `revoking a grant ends its descendants and their invites, and nothing else`()
        async throws
    {
        let store = try Fixture.store(in: scratch)
        let (parent, _) = try await store.grant(Self.inviter)
        let (stranger, strangerToken) = try await store.grant(to: "stranger")
        let spec = InviteSpec(Self.inviter)
        let (_, first) = try await store.invites.create(spec, by: .grant(parent.id), from: Fixture.loopback)
        let (child, childToken) = try await store.invites.redeem(first, as: "c")
        let (invite, second) = try await store.invites.create(spec, by: .grant(child.id), from: Fixture.loopback)
        await #expect(throws: AccessError.self) {
            try await store.grants.revoke(.one(stranger.id), by: .grant(parent.id), from: Fixture.loopback)
        }
        await #expect(throws: AccessError.self) {
            try await store.grants.revoke(.one(parent.id), by: .grant(child.id), from: Fixture.loopback)
        }

        try await store.grants.revoke(parent.id)

        await #expect(throws: AccessError.refused) { try await store.grants.authenticate(childToken) }
        await #expect(throws: AccessError.inviteEnded("the invite \(invite.id) was revoked")) {
            try await store.invites.redeem(second, as: "d")
        }
        _ = try await store.grants.authenticate(strangerToken)
    }

    @Test func `a client with many wrong tokens is throttled, and its valid token is accepted`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, good) = try await store.grant()
        for _ in 0..<10 {
            await #expect(throws: AccessError.refused) { try await store.grants.authenticate(Token(random: .grant)) }
        }
        clock.pass(20)
        await #expect(throws: AccessError.tooManyAttempts(retryAfter: 40)) {
            try await store.grants.authenticate(Token(random: .grant))
        }
        _ = try await store.grants.authenticate(good)
        clock.pass(40)
        await #expect(throws: AccessError.refused) { try await store.grants.authenticate(Token(random: .grant)) }
    }

    @Test func `all loopback addresses count as one client`() async throws {
        let store = try Fixture.store(in: scratch)
        var answers: [AccessError] = []
        for number in 1...20 {
            do {
                _ = try await store.grants.authenticate(Token(random: .grant), from: .tcp(address: "127.0.0.\(number)"))
            } catch { answers.append(error as? AccessError ?? .notAToken) }
        }

        #expect(answers.prefix(10).allSatisfy { $0 == .refused })
        #expect(answers.dropFirst(10).allSatisfy { $0 == .tooManyAttempts(retryAfter: 60) })
        #expect(try Fixture.audit(in: scratch).count == 10)
    }

    @Test func `after recovering a clock ten years ahead, limits and requests expire on time`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, token) = try await store.grant()
        func guess() async -> AccessError? {
            do { _ = try await store.grants.authenticate(Fixture.forged(token)) } catch { return error as? AccessError }
            return nil
        }
        clock.setWall(by: 10 * 365 * 86_400)
        for _ in 0...FailedAttemptLimiter.limit { _ = await guess() }
        if case .tooManyAttempts? = await guess() {} else { Issue.record("guesses are not limited") }
        let spec = AccessRequestSpec(name: SanitizedText("agent"), permissions: Fixture.reader)
        _ = try await store.requests.create(spec, by: Fixture.owner)
        for _ in 1..<UserCodeAttemptLimiter.limit {
            _ = try? await store.requests.deny("WRONG")
        }

        clock.setWall(by: -10 * 365 * 86_400)
        try await ExpirationService(of: store).recoverClock(by: Fixture.owner, from: Fixture.socket)
        #expect(await store.requests.pending.count == 1)

        clock.pass(3_601)
        #expect(await guess() == .refused)
        #expect(await store.requests.pending.isEmpty)
        _ = try? await store.requests.deny("WRONG")
        _ = try await store.requests.create(spec, by: Fixture.owner)
    }

    @Test func `a clock set ten years forward and back ends grants, and an owner recovers it`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, old) = try await store.grant()
        clock.setWall(by: 315_360_000)
        await #expect(throws: AccessError.refused) { try await store.grants.authenticate(old) }
        clock.setWall(by: -315_360_000)
        await #expect(throws: AccessError.refused) { try await store.grants.authenticate(old) }
        #expect(await store.wallClockLag > .seconds(315_000_000))

        try await ExpirationService(of: store).recoverClock(by: Fixture.owner, from: Fixture.socket)

        #expect(await store.wallClockLag == .zero)
        await #expect(throws: AccessError.refused) { try await store.grants.authenticate(old) }
        let (_, new) = try await store.grant(to: "new")
        _ = try await store.grants.authenticate(new)
    }

    @Test func `a grant expires during suspend, and after a reboot with the clock set back`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let (_, token) = try await store.grant(lifetime: 3_600, idle: 3_600)
        clock.pass(3_600)
        _ = try await store.grant(to: "later")
        try await store.close()
        clock.setWall(by: -7_200)
        clock.reboot()
        store = try Fixture.store(in: scratch, clock: clock)

        await #expect(throws: AccessError.refused) { try await store.grants.authenticate(token) }
        #expect(await store.wallClockLag >= .seconds(7_199))
    }
}
