import Discovery
import Model
import Probes
import Registry

/// The registry, as the prober sees it. Avahi is asked again about an endpoint whose probe failed.
struct ProbedRegistry: LivenessBoard {
    let registry: EndpointRegistry
    let bonjour: BonjourSource?

    func endpointsToProbe() async -> [Endpoint] { await registry.endpointsToProbe() }

    func report(_ failure: DialFailure?, of id: EndpointID) async {
        await registry.report(failure, of: id)
        guard failure != nil, let bonjour, let endpoint = try? await registry.endpoint(id), endpoint.state == .suspect
        else { return }
        bonjour.lookAgain(at: endpoint.routes.map(\.route))
    }
}
