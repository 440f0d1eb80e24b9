import Model
import Pairing
import Registry

/// What of the list this caller sees, and what it may have dialled.
extension Call {
    /// The endpoint in the path, if the caller sees it; one that it does not see is not there.
    func endpoint() async throws -> Endpoint { try await endpoint(try endpointID()) }

    func endpoint(_ id: EndpointID) async throws -> Endpoint {
        let endpoint = try await broker.registry.endpoint(id)
        guard visitor.sees(endpoint) else { throw RegistryError.noSuchEndpoint(id.text) }
        return endpoint
    }

    /// Those that the caller sees.
    func seen(_ endpoints: [Endpoint]) -> [Endpoint] { endpoints.filter(visitor.sees) }

    /// Makes sure that the caller may have the endpoint dialled. An owner's own use is a yes; a token's holder needs one.
    ///
    /// An endpoint that is nowhere now passes: it is looked at again when it is dialled.
    func checkTrust(in endpoint: Endpoint) async throws {
        let approval = await broker.pairing.approval(of: endpoint.id)
        let user: ApprovalRule.User = visitor.isOwner ? .person : .agent
        let decisions = endpoint.routes.map { ApprovalRule.decide(user, $0, of: endpoint, approval) }
        // Also beside a cable, so that what an owner opened goes on over the network when the cable is pulled.
        if decisions.contains(.allowedAndApproves) {
            try await broker.trust.approve(endpoint, by: visitor.caller, from: visitor.origin)
            return
        }
        if decisions.contains(.allowed) { return }
        for case .refused(let why) in decisions {
            throw Problem(.forbidden, why, next: "patchbay approve \(endpoint.id)")
        }
    }
}
