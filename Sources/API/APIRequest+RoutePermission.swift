import Model
import AccessControl
import Registry

/// What of the list this caller sees, and what it may have dialled.
extension APIRequest {
    /// The endpoint in the path, if the caller sees it; one that it does not see is not there.
    func endpoint() async throws -> Endpoint { try await endpoint(try endpointID()) }

    func endpoint(_ id: EndpointID) async throws -> Endpoint {
        let endpoint = try await broker.registry.endpoint(id)
        guard visitor.sees(endpoint) else { throw RegistryError.noSuchEndpoint(id.text) }
        return endpoint
    }

    /// Those that the caller sees.
    func seen(_ endpoints: [Endpoint]) -> [Endpoint] { endpoints.filter(visitor.sees) }

    /// Makes sure that an owner has approved a route of the endpoint. An owner's own use is no approval: it would approve
    /// whichever address an advert gives at that moment.
    ///
    /// An endpoint that is nowhere now passes: it is looked at again when it is dialled.
    func checkTrust(in endpoint: Endpoint) async throws {
        let approval = await broker.pairing.approval(of: endpoint.id)
        guard let refusal = ApprovalPolicy.refusal(of: endpoint, approval) else { return }
        throw Problem(.forbidden, refusal.detail, next: refusal.next)
    }
}
