import Apps
import Model
import Registry
import Samples
import TestSupport
import Testing
import Tunnels

@testable import API
@testable import patchbayd

/// The events that make the prober look at its schedule again.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct RegistryLivenessStoreTests {
    private let scratch = ScratchFolder.current

    private struct NoRoutes: RouteResolver {
        func resolve(_ target: TunnelTarget) throws(DialError) -> ResolvedTarget { ResolvedTarget([]) }
    }

    @Test func `a change of the list, a new tunnel and the arrival of a client are each a change`() async throws {
        let tunnels = try await TunnelTable(
            planner: RoutePlanner(resolver: NoRoutes(), planner: FakeDialer.silent()),
            logger: .quiet
        )
        let (registry, clients) = (EndpointRegistry(), ConnectionLimiter())
        let store = RegistryLivenessStore(
            registry: registry,
            tunnels: tunnels,
            clients: .init(isPresent: { clients.hasRecentClient() }, arrivals: { clients.arrivals() }),
            resolveAgain: { _ in }
        )
        let app = Sighting.sample(
            "app",
            source: .config,
            kind: .tcp,
            isBundleID: false,
            routes: [.network("192.168.1.2", port: 80)]
        )

        var changes = await store.changes()
        await registry.apply(.seen(app))
        await Self.first(of: changes)
        let id = try #require(await store.list(ifChangedSince: nil)?.endpoints.first?.id)
        #expect(await store.watched() == .only([]))

        changes = await store.changes()
        let path = scratch.file("tunnel.sock")
        _ = try await tunnels.create(TunnelSpec(local: .unix(path: path), target: .endpoint(id)))
        await Self.first(of: changes)
        #expect(await store.watched() == .only([id]))

        changes = await store.changes()
        #expect(clients.openConnection(in: .owners))
        await Self.first(of: changes)
        #expect(await store.watched() == .all)
        await tunnels.relay.stop()
    }

    /// Waits for the first element of any of the streams.
    private static func first(of changes: [any AsyncSequence<Void, Never> & Sendable]) async {
        await withTaskGroup { group in
            for change in changes { group.addTask { for await _ in change { break } } }
            await group.next()
            group.cancelAll()
        }
    }
}
