import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

/// Invites for clients on other machines.
@Suite(.scratchFolder) struct RemoteInviteTests {
    private let scratch = ScratchFolder.current
    private static let remote = RequestSource.remote(address: "192.168.1.7")

    private let clock = TestClock()
    private let key: KeyPin
    private let other: KeyPin

    init() throws {
        key = try #require(KeyPin(digest: [UInt8](repeating: 1, count: 32)))
        other = try #require(KeyPin(digest: [UInt8](repeating: 2, count: 32)))
    }

    private func withInvite(
        _ use: InviteUse?,
        _ permissions: Permissions = Fixture.reader,
        _ body: (AccessStore, Token) async throws -> Void
    ) async throws {
        let store = try Fixture.store(in: scratch, clock: clock)
        let spec = InviteSpec(permissions, use: use)
        let (_, invite) = try await store.invites.create(spec)
        try await body(store, invite)
        try await store.close()
    }

    private func redeem(
        _ invite: Token,
        _ store: AccessStore,
        as name: String = "a",
        key: KeyPin? = nil,
        from source: RequestSource = remote
    ) async throws -> (Grant, Token) {
        try await store.invites.redeem(Fixture.redemption(of: invite, as: name), from: source, key: key)
    }

    @Test func `a remote redemption binds the grant to the key of the client`() async throws {
        try await withInvite(.remote) { store, invite in
            let (grant, token) = try await redeem(invite, store, key: key)

            #expect(grant.binding == .key(key) && grant.remote == true)
            #expect(store.grants.authenticate(key: key, from: Self.remote)?.id == grant.id)
            #expect(store.grants.authenticate(key: other, from: Self.remote) == nil)
            for source in [Self.remote, Fixture.loopback, Fixture.socket] {
                await #expect(throws: AccessError.refused) { try await store.grants.authenticate(token, from: source) }
            }
        }
    }

    @Test func `a grant that is bound to a key creates no invite for a token, which can be copied`() async throws {
        try await withInvite(.remote, Permissions([.registryRead, .inviteCreate], on: .all)) { store, invite in
            let grant = try await redeem(invite, store, key: key).0
            func create(_ use: InviteUse) async throws {
                let spec = InviteSpec(Permissions([.registryRead], on: .all), use: use)
                _ = try await store.invites.create(spec, by: .grant(grant.id), from: Self.remote)
            }

            try await create(.remote)
            let error = await #expect(throws: AccessError.self) { try await create(.bearer) }

            #expect(error?.description.contains("bound to a key") == true)
        }
    }

    @Test func `the same key gets the same grant for a minute, and another key gets none`() async throws {
        try await withInvite(.remote) { store, invite in
            let first = try await redeem(invite, store, as: "a", key: key).0
            clock.pass(59)

            #expect(try await redeem(invite, store, as: "another name", key: key).0.id == first.id)
            await #expect(throws: AccessError.self) { try await redeem(invite, store, as: "a", key: other) }
            await #expect(throws: AccessError.self) { try await redeem(invite, store, as: "a") }
            await #expect(throws: AccessError.self) { try await redeem(invite, store, as: "a", from: Fixture.loopback) }
            clock.pass(2)
            await #expect(throws: AccessError.self) { try await redeem(invite, store, key: key) }
        }
    }

    @Test func `a client that joins again has the new grant only, also after its revocation`() async throws {
        try await withInvite(.remote) { store, invite in
            let first = try await redeem(invite, store, key: key).0
            let bystander = try await redeem(try await anotherInvite(store), store, key: other).0

            let second = try await redeem(try await anotherInvite(store), store, key: key).0

            #expect(store.grants.authenticate(key: key, from: Self.remote)?.id == second.id)
            #expect(!store.live.isLive(first.id) && store.live.isLive(bystander.id))
            _ = try await store.grants.revoke(second.id)
            #expect(store.grants.authenticate(key: key, from: Self.remote) == nil)
        }
    }

    private func anotherInvite(_ store: AccessStore) async throws -> Token {
        let spec = InviteSpec(Fixture.reader, use: .remote)
        return try await store.invites.create(spec).1
    }

    @Test func `without a client key, a remote invite is refused and not spent`() async throws {
        try await withInvite(.remote) { store, invite in
            await #expect(throws: AccessError.keyRequired) { try await redeem(invite, store) }
            #expect(await store.invites.list.first?.useCount == 0)
            let grant = try await redeem(invite, store, key: key).0
            #expect(grant.binding == .key(key))
        }
    }

    @Test func `on this machine, a remote invite gives a grant for this machine`() async throws {
        try await withInvite(.remote) { store, invite in
            let (grant, token) = try await redeem(invite, store, from: Fixture.loopback)

            #expect(grant.binding == .bearer && grant.remote == nil)
            #expect(try await store.grants.authenticate(token).id == grant.id)
            await #expect(throws: AccessError.refused) { try await store.grants.authenticate(token, from: Self.remote) }
        }
    }

    @Test(arguments: [nil, InviteUse.local])
    func `a local invite is refused remotely like an unknown one, and is not spent`(use: InviteUse?) async throws {
        try await withInvite(use) { store, invite in
            for key in [nil, key] {
                await #expect(throws: AccessError.refused) { try await redeem(invite, store, key: key) }
            }
            let grant = try await redeem(invite, store, from: Fixture.loopback).0
            #expect(grant.remote == nil)
        }
    }

    @Test(arguments: [(InviteUse.bearer, Fixture.reader), (.device, Permissions([.endpointRegister], on: .all))])
    func `a bearer grant is valid here and remotely`(use: InviteUse, permissions: Permissions) async throws {
        for source in [Self.remote, Fixture.loopback] {
            try await withInvite(use, permissions) { store, invite in
                let (grant, token) = try await redeem(invite, store, from: source)

                #expect(grant.binding == .bearer && grant.remote == true)
                #expect(try await redeem(invite, store, from: source).0.id == grant.id)
                for use in [Self.remote, Fixture.loopback] {
                    #expect(try await store.grants.authenticate(token, from: use).id == grant.id)
                }
            }
        }
    }

    @Test func `the invite of a device is not for a client with a key, and stays unspent`() async throws {
        try await withInvite(.device, Permissions([.endpointRegister], on: .all)) { store, invite in
            await #expect(throws: AccessError.appRequired) { try await redeem(invite, store, key: key) }

            let grant = try await redeem(invite, store).0
            #expect(grant.binding == .bearer)
        }
    }

    @Test func `the grant of a device lives for 30 days, also without use`() async throws {
        try await withInvite(.device, Permissions([.endpointRegister], on: .all)) { store, invite in
            let grant = try await redeem(invite, store).0

            #expect(grant.expiresAt.timeIntervalSince(grant.createdAt) == 30 * 86_400)
            #expect(grant.idleSeconds == 30 * 86_400)
        }
    }

    @Test(arguments: [
        InviteSpec(Permissions([.registryRead, .admin], on: .all), use: .remote),
        InviteSpec(Permissions([.registryRead, .secretRead], on: .all), use: .bearer),
        InviteSpec(Permissions([.endpointRegister, .registryRead], on: .all), use: .device),
        InviteSpec(Permissions([.endpointRegister], on: .bundles(["com.example.shop"])), use: .device),
        InviteSpec(Fixture.reader, use: .remote, user: 1_000),
    ])
    func `an invite for other machines gives neither owner rights nor secrets`(spec: InviteSpec) async throws {
        let store = try Fixture.store(in: scratch)
        await #expect(throws: AccessError.self) { try await store.invites.create(spec) }
        #expect(await store.invites.list.isEmpty)
    }

    @Test func `a grant for this machine cannot invite other machines, and a remote one can`() async throws {
        let inviter = Permissions([.registryRead, .inviteCreate], on: .all)
        let spec = InviteSpec(Permissions([.registryRead], on: .all), use: .remote)
        try await withInvite(.remote, inviter) { store, invite in
            let (local, _) = try await store.grant(inviter)
            await #expect(throws: AccessError.self) {
                try await store.invites.create(spec, by: .grant(local.id), from: Fixture.loopback)
            }
            let parent = try await redeem(invite, store, key: key).0
            let (_, second) = try await store.invites.create(spec, by: .grant(parent.id), from: Self.remote)

            let child = try await redeem(second, store, key: other).0
            try await store.grants.revoke(parent.id)
            #expect(child.parent == parent.id)
            #expect(store.grants.authenticate(key: other, from: Self.remote) == nil)
        }
    }

    @Test func `64 clients with one invite, half of them remote, get one grant`() async throws {
        try await withInvite(.remote) { store, invite in
            let grants = try await withThrowingTaskGroup(of: Grant?.self) { group in
                for number in 0..<64 {
                    let pin = try #require(KeyPin(digest: [UInt8](repeating: UInt8(number), count: 32)))
                    let isRemote = number.isMultiple(of: 2)
                    group.addTask {
                        try? await redeem(
                            invite,
                            store,
                            as: "joiner \(number)",
                            key: isRemote ? pin : nil,
                            from: isRemote ? Self.remote : Fixture.socket
                        ).0
                    }
                }
                return try await group.reduce(into: [Grant]()) { $0 += [$1].compactMap { $0 } }
            }

            #expect(grants.count == 1)
            #expect(await store.grants.list.map(\.id) == grants.map(\.id))
        }
    }

    @Test func `the use of an invite and of a grant survives a restart`() async throws {
        let store = try Fixture.store(in: scratch, clock: clock)
        let spec = InviteSpec(Fixture.reader, use: .bearer, maxUses: 2)
        let (_, invite) = try await store.invites.create(spec)
        let (_, token) = try await redeem(invite, store)
        try await store.close()

        let second = try Fixture.store(in: scratch, clock: clock)
        #expect(await second.invites.list.map(\.use) == [.bearer])
        #expect(try await second.grants.authenticate(token, from: Self.remote).remote == true)
        try await second.close()
    }

    @Test func `wrong tokens of one remote address do not count for another address`() {
        var limiter = FailedAttemptLimiter()
        let now = MonotonicTime(milliseconds: 0)
        for _ in 0..<FailedAttemptLimiter.limit {
            #expect(limiter.recordFailure(from: Self.remote, at: now) == nil)
        }

        #expect(limiter.recordFailure(from: Self.remote, at: now) != nil)
        #expect(limiter.recordFailure(from: .remote(address: "192.168.1.8"), at: now) == nil)
        #expect(limiter.recordFailure(from: Fixture.loopback, at: now) == nil)
    }
}
