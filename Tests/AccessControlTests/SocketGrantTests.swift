import FoundationEssentials
import Model
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

@Suite struct SocketGrantTests {
    private static func spec(_ permissions: Permissions = Fixture.reader, lifetime: Int? = nil) -> SocketGrantSpec {
        SocketGrantSpec(
            path: "/run/agent/patchbay.sock",
            name: SanitizedText("agent"),
            permissions: permissions,
            lifetimeSeconds: lifetime
        )
    }

    @Test func `a client of the socket has the grant until its end, also after a restart`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Fixture.store(in: scratch, clock: clock)
            let grant = try await store.grants.create(Self.spec(lifetime: 60), by: Fixture.owner, from: Fixture.socket)
            #expect(grant.binding == .socket("/run/agent/patchbay.sock"))
            try await store.close()
            store = try Fixture.store(in: scratch, clock: clock)
            #expect(await store.grants.sockets == [SocketGrant(id: grant.id, path: "/run/agent/patchbay.sock")])
            #expect(store.grants.authenticate(clientOfSocketGrant: grant.id)?.permissions == Fixture.reader)

            clock.pass(60)
            #expect(store.grants.authenticate(clientOfSocketGrant: grant.id) == nil)
            #expect(await store.grants.sockets.isEmpty)
        }
    }

    @Test func `a revoked grant closes its socket before the revocation returns`() async throws {
        try await withScratchFolder { scratch in
            let store = try Fixture.store(in: scratch, clock: TestClock())
            let grant = try await store.grants.create(Self.spec(), by: Fixture.owner, from: Fixture.socket)
            let closed = Promise<Void>()
            _ = try store.live.register(under: grant.id) { closed.complete(.success(())) }
            try await store.grants.revoke(.one(grant.id), by: Fixture.owner, from: Fixture.socket)
            #expect(closed.isCompleted)
            #expect(store.grants.authenticate(clientOfSocketGrant: grant.id) == nil)
        }
    }

    @Test func `a grant for a socket is never an owner's, and other grants have no socket`() async throws {
        try await withScratchFolder { scratch in
            let store = try Fixture.store(in: scratch, clock: TestClock())
            let owner = Permissions([.admin, .registryRead], on: .all)
            await #expect(throws: AccessError.self) {
                try await store.grants.create(Self.spec(owner), by: Fixture.owner, from: Fixture.socket)
            }
            let (bearer, _) = try await store.grant(to: "bearer")
            #expect(store.grants.authenticate(clientOfSocketGrant: bearer.id) == nil)
        }
    }

    @Test func `a grant for a socket registers no apps, because the broker would dial its own machine`() async throws {
        try await withScratchFolder { scratch in
            let store = try Fixture.store(in: scratch, clock: TestClock())
            let app = Permissions([.endpointRegister], on: .all)
            await #expect {
                try await store.grants.create(Self.spec(app), by: Fixture.owner, from: Fixture.socket)
            } throws: { "\($0)".contains("endpoint.register") && "\($0)".contains("patchbay pair") }
            #expect(await store.grants.sockets.isEmpty)
        }
    }

    @Test func `a client of the socket does not meet the binding to a user`() {
        let source = RequestSource.socket(grant: "g")
        #expect(!GrantBinding.user(0).isMet(by: source))
        #expect(!GrantBinding.socket("/a").isMet(by: .unix(uid: 0)))
        #expect(!GrantBinding.socket("/a").isMet(by: source))
    }
}
