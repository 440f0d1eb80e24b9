package import Model
package import Registry
package import Tunnels

/// The local endpoints of the registry as `LivenessStore`. A failed probe also makes Avahi resolve the endpoint again.
package struct RegistryLivenessStore: LivenessStore {
    /// The clients of the API, in whose presence every endpoint is watched.
    package struct Clients: Sendable {
        let isPresent: @Sendable () -> Bool
        let arrivals: @Sendable () -> AsyncStream<Void>

        package init(isPresent: @escaping @Sendable () -> Bool, arrivals: @escaping @Sendable () -> AsyncStream<Void>) {
            (self.isPresent, self.arrivals) = (isPresent, arrivals)
        }
    }

    private let registry: EndpointRegistry
    private let tunnels: TunnelTable
    private let clients: Clients
    private let resolveAgain: @Sendable ([Route]) -> Void

    /// - Parameters:
    ///   - registry: The registry.
    ///   - tunnels: The tunnels, whose targets are always watched.
    ///   - clients: The clients of the API.
    ///   - resolveAgain: Looks up the addresses of advertised routes again.
    package init(
        registry: EndpointRegistry,
        tunnels: TunnelTable,
        clients: Clients,
        resolveAgain: @escaping @Sendable ([Route]) -> Void
    ) {
        self.registry = registry
        self.tunnels = tunnels
        self.clients = clients
        self.resolveAgain = resolveAgain
    }

    package func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)? {
        await registry.list(ifChangedSince: revision)
    }

    /// With a connected API client every endpoint is watched; otherwise only the targets of tunnels.
    package func watched() async -> WatchedEndpoints {
        if clients.isPresent() { return .all }
        return .only(await tunnels.endpoints)
    }

    /// A client that has been gone for a minute is not reported, because its end makes no probe due.
    package func changes() async -> [any AsyncSequence<Void, Never> & Sendable] {
        [await registry.changes().changes.map { _ in }, await tunnels.events().map { _ in }, clients.arrivals()]
    }

    package func report(_ failure: DialError?, of id: EndpointID) async {
        await registry.report(failure, of: id)
        guard failure != nil, let endpoint = try? await registry.endpoint(id),
            endpoint.state == .suspect
        else { return }
        resolveAgain(endpoint.routes.map(\.route))
    }
}
