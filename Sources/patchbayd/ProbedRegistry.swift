import API
import Discovery
import Model
import Probing
import Registry
import Tunnels

/// The registry, as the prober sees it. Avahi is asked again about an endpoint whose probe failed.
struct ProbedRegistry: LivenessStore {
    let registry: EndpointRegistry
    let bonjour: BonjourSource?
    let tunnels: TunnelTable
    let clients: ConnectionLimiter

    func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)? {
        await registry.list(ifChangedSince: revision)
    }

    /// A client may look at any endpoint. Without a client, those matter to which a tunnel leads.
    func watched() async -> WatchedEndpoints {
        if clients.isPresent() { return .all }
        let targets = await tunnels.list().map(\.spec.target)
        return .only(Set(targets.compactMap { if case .endpoint(let id) = $0 { id } else { nil } }))
    }

    func report(_ failure: DialError?, of id: EndpointID) async {
        await registry.report(failure, of: id)
        guard failure != nil, let bonjour, let endpoint = try? await registry.endpoint(id), endpoint.state == .suspect
        else { return }
        bonjour.lookAgain(at: endpoint.routes.map(\.route))
    }
}
