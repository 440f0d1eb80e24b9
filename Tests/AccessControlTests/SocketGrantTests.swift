import FoundationEssentials
import Model
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct SocketGrantTests {
    private let scratch = ScratchFolder.current

    private static func spec(_ permissions: Permissions = Fixture.reader, lifetime: Int? = nil) -> SocketGrantSpec {
        SocketGrantSpec(
            path: "/run/agent/patchbay.sock",
            name: SanitizedText("agent"),
            permissions: permissions,
            lifetimeSeconds: lifetime
        )
    }

    @Test func `a client of the socket has the grant until its end, also after a restart`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let grant = try await store.grants.create(Self.spec(lifetime: 60))
        #expect(grant.binding == .socket("/run/agent/patchbay.sock"))
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)
        #expect(await store.grants.sockets == [SocketGrant(id: grant.id, path: "/run/agent/patchbay.sock")])
        #expect(store.grants.authenticate(clientOfSocketGrant: grant.id)?.permissions == Fixture.reader)

        clock.pass(60)
        #expect(store.grants.authenticate(clientOfSocketGrant: grant.id) == nil)
        #expect(await store.grants.sockets.isEmpty)
    }

    @Test func `a revoked grant closes its socket before the revocation returns`() async throws {
        let store = try Fixture.store(in: scratch, clock: TestClock())
        let grant = try await store.grants.create(Self.spec())
        let closed = Promise<Void>()
        _ = try store.live.register(under: grant.id) { closed.complete(.success(())) }
        try await store.grants.revoke(grant.id)
        #expect(closed.isCompleted)
        #expect(store.grants.authenticate(clientOfSocketGrant: grant.id) == nil)
    }

    @Test func `a grant for a socket is never an owner's, and other grants have no socket`() async throws {
        let store = try Fixture.store(in: scratch, clock: TestClock())
        let owner = Permissions([.admin, .registryRead], on: .all)
        await #expect(throws: AccessError.self) { try await store.grants.create(Self.spec(owner)) }
        let (bearer, _) = try await store.grant(to: "bearer")
        #expect(store.grants.authenticate(clientOfSocketGrant: bearer.id) == nil)
    }

    @Test func `a grant for a socket registers no apps, because the broker would dial its own machine`() async throws {
        let store = try Fixture.store(in: scratch, clock: TestClock())
        let app = Permissions([.endpointRegister], on: .all)
        await #expect {
            try await store.grants.create(Self.spec(app))
        } throws: { "\($0)".contains("endpoint.register") && "\($0)".contains("patchbay pair") }
        #expect(await store.grants.sockets.isEmpty)
    }

    @Test func `a client of the socket does not meet the binding to a user`() {
        let source = RequestSource.socket(grant: "g")
        #expect(!GrantBinding.user(0).isMet(by: source))
        #expect(!GrantBinding.socket("/a").isMet(by: .unix(uid: 0)))
        #expect(!GrantBinding.socket("/a").isMet(by: source))
    }
}
