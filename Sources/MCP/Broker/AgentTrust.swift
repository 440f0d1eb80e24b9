package import Model
package import AccessControl

/// How far endpoints are trusted, and their own tokens.
package protocol AgentTrust: Sendable {
    /// The same endpoints, each with how far it is trusted where it is now.
    func judged(_ endpoints: [Endpoint]) async -> [Endpoint]
    /// Those of which the broker has a token for this launch.
    func held(of endpoints: [Endpoint]) async -> Set<EndpointID>
    /// Keeps an app's own token, which may be for a launch that the broker has not seen yet, at a port that is known or not.
    func keep(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for caller: AgentCaller
    ) async throws
}

extension AccessStore: AgentTrust {
    package func judged(_ endpoints: [Endpoint]) async -> [Endpoint] {
        endpoints.map { endpoint in
            var endpoint = endpoint
            let approval = approval(of: endpoint.id)
            for index in endpoint.routes.indices {
                endpoint.routes[index].approval =
                    ApprovalPolicy.verdict(on: endpoint.routes[index], approval).approval
            }
            endpoint.approval = ApprovalPolicy.approval(of: endpoint, approval)
            return endpoint
        }
    }

    package func held(of endpoints: [Endpoint]) async -> Set<EndpointID> {
        Set(endpoints.filter(holdsSecret).map(\.id))
    }

    package func keep(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for caller: AgentCaller
    ) async throws {
        try setSecret(secret, of: endpoint, on: port, isForUnseen: isForUnseen, by: caller.caller, from: caller.origin)
    }
}
