import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

@Suite struct GrantTests {
    private static let inviter = Permissions([.endpointCall, .inviteCreate], on: .bundles(["a", "b"]))

    @Test func `unknown, wrong, revoked, expired and idle are told apart by nobody`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (_, expired) = try await store.grant(lifetime: 60, to: "expired")
            let (_, idle) = try await store.grant(idle: 60, to: "idle")
            clock.pass(60)
            let (revoked, revokedToken) = try await store.grant(to: "revoked")
            try await store.revoke(.one(revoked.id), by: Bench.owner, from: Bench.socket)
            let (_, good) = try await store.grant(to: "good")

            var words: Set<String> = []
            for token in [
                Token(random: .grant), Bench.forged(good), revokedToken, expired, idle, Token(random: .invite),
            ] {
                let error = await #expect(throws: AccessError.refused) {
                    try await store.authenticate(token, from: Bench.loopback)
                }
                words.insert("\(String(describing: error))")
            }
            #expect(words.count == 1)
            _ = try await store.authenticate(good, from: Bench.loopback)
            let reasons = try Bench.audit(in: scratch).filter { $0.event.action == .refused }.compactMap(\.event.detail)
            #expect(
                reasons == [
                    "unknown grant", "wrong secret", "revoked grant", "expired grant", "idle grant", "unknown grant",
                ]
            )
        }
    }

    @Test func `using a grant keeps it from resting, and a restart does not make it younger`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Bench.store(in: scratch, clock: clock)
            let (_, token) = try await store.grant(idle: 100)
            for _ in 0..<5 {
                clock.pass(90)
                _ = try await store.authenticate(token, from: Bench.loopback)
            }
            try await store.close()
            store = try Bench.store(in: scratch, clock: clock)
            clock.pass(99)
            _ = try await store.authenticate(token, from: Bench.loopback)
            clock.pass(100)
            await #expect(throws: AccessError.refused) { try await store.authenticate(token, from: Bench.loopback) }
        }
    }

    @Test func `a grant that is bound to a user is refused to another, and over TCP`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let terms = InviteTerms(Bench.reader, binding: .user(1_001))
            let (_, invite) = try await store.invite(terms, by: Bench.owner, from: Bench.socket)
            await #expect(throws: AccessError.refused) {
                try await store.redeem(invite, for: Bench.client("a"), from: .unix(uid: 1_002))
            }
            let (_, token) = try await store.redeem(invite, for: Bench.client("a"), from: .unix(uid: 1_001))

            _ = try await store.authenticate(token, from: .unix(uid: 1_001))
            for origin in [RequestSource.unix(uid: 1_002), Bench.loopback, .tls(address: "x", key: "k")] {
                await #expect(throws: AccessError.refused) { try await store.authenticate(token, from: origin) }
            }
        }
    }

    @Test func `a child is never wider, longer-lived or about other endpoints than its parent`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (parent, _) = try await store.grant(Self.inviter, lifetime: 3_600)
            let wide = [
                InviteTerms(Permissions([.tunnelOpen], on: .bundles(["a"]))),
                InviteTerms(Permissions([.endpointCall], on: .bundles(["c"]))),
                InviteTerms(Permissions([.endpointCall], on: .all)),
                InviteTerms(Permissions([.endpointCall], on: .bundles(["a"])), grantLifetime: 3_601),
            ]
            for terms in wide {
                await #expect(throws: AccessError.self) {
                    try await store.delegate(under: parent.id, to: SanitizedText("b"), terms, from: Bench.loopback)
                }
                await #expect(throws: AccessError.self) {
                    try await store.invite(terms, by: .grant(parent.id), from: Bench.loopback)
                }
            }
            let narrow = InviteTerms(Permissions([.endpointCall], on: .bundles(["a"])))
            let (child, _) = try await store.delegate(
                under: parent.id,
                to: SanitizedText("b"),
                narrow,
                from: Bench.loopback
            )
            #expect(child.expires <= parent.expires)
            await #expect(throws: AccessError.self) {
                try await store.delegate(under: child.id, to: SanitizedText("c"), narrow, from: Bench.loopback)
            }
        }
    }

    @Test func `revoking a grant ends its descendants and the invites they made, and may not reach beyond`()
        async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (parent, _) = try await store.grant(Self.inviter)
            let (stranger, strangerToken) = try await store.grant(to: "stranger")
            let terms = InviteTerms(Self.inviter)
            let (_, first) = try await store.invite(terms, by: .grant(parent.id), from: Bench.loopback)
            let (child, childToken) = try await store.redeem(first, for: Bench.client("c"), from: Bench.loopback)
            let (_, second) = try await store.invite(terms, by: .grant(child.id), from: Bench.loopback)
            await #expect(throws: AccessError.self) {
                try await store.revoke(.one(stranger.id), by: .grant(parent.id), from: Bench.loopback)
            }
            await #expect(throws: AccessError.self) {
                try await store.revoke(.one(parent.id), by: .grant(child.id), from: Bench.loopback)
            }

            try await store.revoke(.one(parent.id), by: Bench.owner, from: Bench.socket)

            await #expect(throws: AccessError.refused) {
                try await store.authenticate(childToken, from: Bench.loopback)
            }
            await #expect(throws: AccessError.refused) {
                try await store.redeem(second, for: Bench.client("d"), from: Bench.loopback)
            }
            _ = try await store.authenticate(strangerToken, from: Bench.loopback)
        }
    }

    @Test func `a rotated secret counts for its grace, and later ends the whole family with an alert`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (grant, old) = try await store.grant(Self.inviter)
            let narrow = InviteTerms(Permissions([.endpointCall], on: .bundles(["a"])))
            let (_, child) = try await store.delegate(
                under: grant.id,
                to: SanitizedText("b"),
                narrow,
                from: Bench.loopback
            )
            let (_, new) = try await store.rotate(old, grace: 60, from: Bench.loopback)
            clock.pass(59)
            _ = try await store.authenticate(old, from: Bench.loopback)
            _ = try await store.authenticate(new, from: Bench.loopback)

            clock.pass(1)
            for token in [old, new, child] {
                await #expect(throws: AccessError.refused) {
                    try await store.authenticate(token, from: Bench.loopback)
                }
            }
            #expect(await store.grants.allSatisfy { $0.end == .reused })
            #expect(try Bench.audit(in: scratch).contains { $0.event.action == .reused && $0.event.isAlert == true })
        }
    }

    @Test func `without a grace the old secret ends the grant at once, and a longer one than a minute is refused`()
        async throws
    {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (_, old) = try await store.grant()
            await #expect(throws: AccessError.self) { try await store.rotate(old, grace: 61, from: Bench.loopback) }
            let (_, new) = try await store.rotate(old, from: Bench.loopback)
            _ = try await store.authenticate(new, from: Bench.loopback)
            for token in [old, new] {
                await #expect(throws: AccessError.refused) {
                    try await store.authenticate(token, from: Bench.loopback)
                }
            }
        }
    }

    @Test func `many wrong tokens from one place are put off, and a right one from there is not`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (_, good) = try await store.grant()
            for _ in 0..<10 {
                await #expect(throws: AccessError.refused) {
                    try await store.authenticate(Token(random: .grant), from: Bench.loopback)
                }
            }
            clock.pass(20)
            await #expect(throws: AccessError.tooManyAttempts(retryAfter: 40)) {
                try await store.authenticate(Token(random: .grant), from: Bench.loopback)
            }
            _ = try await store.authenticate(good, from: Bench.loopback)
            clock.pass(40)
            await #expect(throws: AccessError.refused) {
                try await store.authenticate(Token(random: .grant), from: Bench.loopback)
            }
        }
    }

    @Test func `another address of the loopback is the same place`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            var answers: [AccessError] = []
            for number in 1...20 {
                do {
                    _ = try await store.authenticate(Token(random: .grant), from: .tcp(address: "127.0.0.\(number)"))
                } catch {
                    answers.append(error as? AccessError ?? .notAToken)
                }
            }

            #expect(answers.prefix(10).allSatisfy { $0 == .refused })
            #expect(answers.dropFirst(10).allSatisfy { $0 == .tooManyAttempts(retryAfter: 60) })
            #expect(try Bench.audit(in: scratch).count == 10)
        }
    }

    @Test func `after a clock that was ten years ahead, limits end in their time and requests too`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (_, token) = try await store.grant()
            func guess() async -> AccessError? {
                do { _ = try await store.authenticate(Bench.forged(token), from: Bench.loopback) } catch {
                    return error as? AccessError
                }
                return nil
            }
            clock.setWall(by: 10 * 365 * 86_400)
            for _ in 0...FailedAttemptLimiter.limit { _ = await guess() }
            if case .tooManyAttempts? = await guess() {} else { Issue.record("guesses are not limited") }
            let terms = AccessTerms(Bench.reader, name: SanitizedText("agent"))
            _ = try await store.request(terms, by: Bench.owner)
            for _ in 1..<UserCodeAttemptLimiter.limit {
                _ = try? await store.deny("WRONG", by: Bench.owner, from: Bench.socket)
            }

            clock.setWall(by: -10 * 365 * 86_400)
            try await store.recoverClock(by: Bench.owner, from: Bench.socket)
            #expect(await store.requests.count == 1)

            clock.pass(3_601)
            #expect(await guess() == .refused)
            #expect(await store.requests.isEmpty)
            _ = try? await store.deny("WRONG", by: Bench.owner, from: Bench.socket)
            _ = try await store.request(terms, by: Bench.owner)
        }
    }

    @Test func `a clock set ten years forward and back ends things, and an owner puts it right`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            let store = try Bench.store(in: scratch, clock: clock)
            let (_, old) = try await store.grant()
            clock.setWall(by: 315_360_000)
            await #expect(throws: AccessError.refused) { try await store.authenticate(old, from: Bench.loopback) }
            clock.setWall(by: -315_360_000)
            await #expect(throws: AccessError.refused) { try await store.authenticate(old, from: Bench.loopback) }
            #expect(await store.clockBehind > .seconds(315_000_000))

            try await store.recoverClock(by: Bench.owner, from: Bench.socket)

            #expect(await store.clockBehind == .zero)
            await #expect(throws: AccessError.refused) { try await store.authenticate(old, from: Bench.loopback) }
            let (_, new) = try await store.grant(to: "new")
            _ = try await store.authenticate(new, from: Bench.loopback)
        }
    }

    @Test func `sleeping past its time ends a grant, and so does a reboot with a clock that was set back`() async throws
    {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Bench.store(in: scratch, clock: clock)
            let (_, token) = try await store.grant(lifetime: 3_600, idle: 3_600)
            clock.pass(3_600)
            _ = try await store.grant(to: "later")
            try await store.close()
            clock.setWall(by: -7_200)
            clock.reboot()
            store = try Bench.store(in: scratch, clock: clock)

            await #expect(throws: AccessError.refused) { try await store.authenticate(token, from: Bench.loopback) }
            #expect(await store.clockBehind >= .seconds(7_199))
        }
    }
}
