import FoundationEssentials
import Model
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

/// The sign-in of owners in a browser: codes, sessions, and the attacks on both.
@Suite(.scratchFolder) struct DashboardSignInTests {
    private let scratch = ScratchFolder.current
    private static let user: UInt32 = 1_000
    private static let name = SanitizedText("Dashboard of anna")

    private func code(_ store: AccessStore, for user: UInt32 = user) async throws -> String {
        try await store.dashboard.createCode(for: user, by: Fixture.owner, from: Fixture.socket).code
    }

    private func signIn(_ store: AccessStore, _ code: String, as owner: UInt32? = user) async throws -> (Grant, Token) {
        try await store.dashboard.signIn(with: code, owner: owner, name: Self.name, from: Fixture.loopback)
    }

    @Test func `a code gives a session of 12 hours, which survives a restart`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let code = try await code(store)
        #expect(code.utf8.count == 22 && code.utf8.allSatisfy(Base62.contains))
        let (grant, token) = try await signIn(store, code)
        #expect(grant.binding == .dashboard(Self.user) && grant.name == Self.name && grant.parent == nil)
        #expect(grant.expiresAt.timeIntervalSince(grant.createdAt) == 43_200 && grant.idleSeconds == 43_200)

        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)
        clock.pass(43_000)
        #expect(try await store.grants.authenticate(token, from: Fixture.loopback, user: Self.user).id == grant.id)
        clock.pass(200)
        await #expect(throws: AccessError.refused) {
            try await store.grants.authenticate(token, from: Fixture.loopback, user: Self.user)
        }
    }

    @Test func `a code works once`() async throws {
        let store = try Fixture.store(in: scratch)
        let code = try await code(store)
        _ = try await signIn(store, code)

        await #expect(throws: AccessError.refused) { try await signIn(store, code) }
    }

    @Test func `of two sign-ins with one code at the same time, one succeeds`() async throws {
        let store = try Fixture.store(in: scratch)
        let code = try await code(store)
        let count = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 { group.addTask { (try? await signIn(store, code)) != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }

        #expect(count == 1)
    }

    @Test func `a code ends after 60 s, also while the clock goes back`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let (early, late) = (try await code(store), try await code(store))
        clock.pass(59)
        _ = try await signIn(store, early)
        clock.setWall(by: -3_600)
        clock.pass(1)

        await #expect(throws: AccessError.refused) { try await signIn(store, late) }
    }

    @Test func `a code is for its user, and another user does not use it up`() async throws {
        let store = try Fixture.store(in: scratch)
        let code = try await code(store)
        for other: UInt32? in [0, 1_001, nil] {
            await #expect(throws: AccessError.refused) { try await signIn(store, code, as: other) }
        }

        #expect(try await signIn(store, code).0.binding == .dashboard(Self.user))
    }

    @Test func `a user has four open codes, of which a new one replaces the oldest`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let other = try await code(store, for: 1_001)
        var codes: [String] = []
        for _ in 0..<5 {
            codes.append(try await code(store))
            clock.pass(1)
        }

        await #expect(throws: AccessError.refused) { try await signIn(store, codes[0]) }
        for code in codes.dropFirst() { _ = try await signIn(store, code) }
        #expect(try await signIn(store, other, as: 1_001).0.binding == .dashboard(1_001))
    }

    @Test func `wrong codes count in the limiter, and a right one is still accepted`() async throws {
        let store = try Fixture.store(in: scratch)
        let code = try await code(store)
        for wrong in ["", code + "x", String(code.dropLast()), String(repeating: "x", count: 22)] {
            await #expect(throws: AccessError.refused) { try await signIn(store, wrong) }
        }
        for _ in 0..<6 { await #expect(throws: AccessError.refused) { try await signIn(store, "wrong") } }
        await #expect(throws: AccessError.tooManyAttempts(retryAfter: 60)) { try await signIn(store, "wrong") }

        _ = try await signIn(store, code)
        let refused = try Fixture.audit(in: scratch).filter { $0.event.action == .refused }
        #expect(refused.count == 10)
    }

    @Test(arguments: [
        (RequestSource.tcp(address: "127.0.0.1"), UInt32?(1_000), true), (.tcp(address: "::1"), 1_000, true),
        (.tcp(address: "127.0.0.1"), 0, false), (.tcp(address: "127.0.0.1"), 1_001, false),
        (.tcp(address: "127.0.0.1"), nil, false), (.unix(uid: 1_000), 1_000, false), (.unix(uid: 0), 0, false),
        (.remote(address: "10.0.0.7"), 1_000, false), (.socket(grant: "g"), 1_000, false), (.broker, 1_000, false),
    ])
    func `the token of a session counts on loopback connections of its user only`(
        source: RequestSource,
        user: UInt32?,
        isAccepted: Bool
    ) async throws {
        let store = try Fixture.store(in: scratch)
        let (grant, token) = try await signIn(store, try await code(store))

        let result = try? await store.grants.authenticate(token, from: source, user: user)
        #expect((result != nil) == isAccepted)
        let principal = try? Principal(session: grant, source: source, user: user)
        #expect(principal?.isOwner ?? false == isAccepted)
    }

    @Test func `a grant of another kind is no session`() async throws {
        let store = try Fixture.store(in: scratch)
        let (bearer, _) = try await store.grant(to: "bearer")

        #expect(throws: AccessError.refused) {
            try Principal(session: bearer, source: Fixture.loopback, user: Self.user)
        }
        #expect(!Principal(.owner, source: Fixture.loopback, actor: .anonymous).isOwner)
    }

    @Test func `a session acts as its user, and is revoked with its connections`() async throws {
        let store = try Fixture.store(in: scratch)
        let (grant, token) = try await signIn(store, try await code(store))
        let principal = try Principal(session: grant, source: Fixture.loopback, user: Self.user)
        #expect(principal.holder == "uid:1000" && principal.grant == nil && principal.credential?.id == grant.id)
        #expect(principal.leaseHolder == .user(Self.user) && principal.tools == .all)
        let closed = Promise<Void>()
        _ = try store.live.register(under: grant.id) { closed.complete(.success(())) }

        // An invite of the session is one of the user, so it outlives the session as any other one.
        let (invite, _) = try await store.invites.create(
            InviteSpec(Fixture.reader),
            by: principal.actor,
            from: Fixture.loopback
        )
        #expect(invite.createdBy == .dashboard(uid: Self.user, grant: grant.id))
        #expect(await store.grants.list.map(\.id) == [grant.id])
        #expect(try await store.grants.revoke(grant.id) == [grant.id])
        #expect(closed.isCompleted)
        #expect(await store.invites.list.first?.endReason == nil)
        await #expect(throws: AccessError.refused) {
            try await store.grants.authenticate(token, from: Fixture.loopback, user: Self.user)
        }
    }

    @Test func `a session that was sent in a URL is revoked`() async throws {
        let store = try Fixture.store(in: scratch)
        let (grant, token) = try await signIn(store, try await code(store))
        try await store.grants.revokeLeaked(token, from: Fixture.loopback, user: Self.user)

        #expect(await store.grants.list.first { $0.id == grant.id }?.endReason == .revoked)
    }

    @Test func `the audit log has the code and the sign-in, and neither secret`() async throws {
        let store = try Fixture.store(in: scratch)
        let code = try await code(store)
        let (grant, token) = try await signIn(store, code)
        try await store.close()

        let events = try Fixture.audit(in: scratch).map(\.event)
        #expect(events.map(\.action) == [.dashboardCode, .signedIn])
        #expect(events.last?.who == .dashboard(uid: Self.user, grant: grant.id))
        let text = try String(contentsOfFile: scratch.file("audit.jsonl"), encoding: .utf8)
        #expect(!text.contains(code) && !text.contains(token.reveal()))
    }

    @Test func `the binding and the author keep their form in JSON`() throws {
        let (encoder, decoder) = (JSONCoding.encoder(), JSONCoding.decoder())
        let binding = try encoder.encode([GrantBinding.dashboard(7)])
        #expect(String(decoding: binding, as: UTF8.self) == #"[{"dashboard":7}]"#)
        #expect(try decoder.decode([GrantBinding].self, from: binding) == [.dashboard(7)])
        let actor = AuditActor.dashboard(uid: 7, grant: "g")
        #expect(try decoder.decode(AuditActor.self, from: try encoder.encode(actor)) == actor)
    }
}
