import AccessControl
import Model
import Samples
import TestSupport
import Testing
import Tunnels

@testable import Registry
@testable import patchbayd

/// The IDs of removed endpoints, with more of them than the broker keeps.
@Suite(.scratchFolder) struct RetiredIDCleanerTests {
    private let scratch = ScratchFolder.current

    private struct NoRoutes: RouteResolver {
        func resolve(_ target: TunnelTarget) throws(DialError) -> ResolvedTarget { ResolvedTarget([]) }
    }

    @Test func `IDs that a grant, an open invite or a tunnel names are never freed`() async throws {
        let accessStore = try AccessStore(in: scratch.path, logger: .quiet)
        let planner = RoutePlanner(resolver: NoRoutes(), planner: FakeDialer.silent())
        let tunnels = try await TunnelTable(planner: planner, logger: .quiet)
        let ids = (0..<RetiredIDs.limit + 10).compactMap { EndpointID("app-\($0)") }
        var retired = RetiredIDs()
        for id in ids { retired.add(id, for: []) }
        let registry = EndpointRegistry(retired: retired)

        let granted = try await Self.invite(to: ids[0], in: accessStore)
        let client = RedemptionSpec(
            token: granted.reveal(),
            client: String(repeating: "c", count: 22),
            name: SanitizedText("agent")
        )
        let (grant, _) = try await accessStore.invites.redeem(client, from: .tcp(address: "127.0.0.1"))
        _ = try await Self.invite(to: ids[1], in: accessStore)
        let path = scratch.file("tunnel.sock")
        _ = try await tunnels.create(TunnelSpec(local: .unix(path: path), target: .endpoint(ids[2])))

        await registry.freeRetired { await accessStore.namedEndpoints.union(tunnels.endpoints) }
        let kept = await registry.retired
        #expect(ids.prefix(3).allSatisfy { kept.contains($0) })
        #expect(ids[3..<13].allSatisfy { !kept.contains($0) } && ids[13...].allSatisfy { kept.contains($0) })
        #expect(await accessStore.namedEndpoints == [ids[0], ids[1]])

        _ = try await accessStore.grants.revoke(.one(grant.id), by: .broker, from: .broker)
        #expect(await accessStore.namedEndpoints == [ids[1]])
        await tunnels.relay.stop()
    }

    private static func invite(to id: EndpointID, in accessStore: AccessStore) async throws -> Token {
        let spec = InviteSpec(Permissions([.registryRead], on: .endpoints([id])), maxUses: 1)
        return try await accessStore.invites.create(spec, by: .broker, from: .broker).1
    }
}
