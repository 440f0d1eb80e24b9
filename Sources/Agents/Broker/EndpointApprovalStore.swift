package import AccessControl
import Apps
package import Model

/// Approval states and session tokens of endpoints, for the broker's tools.
package protocol EndpointApprovalStore: Sendable {
    /// Returns the endpoints with the approval of each route filled in.
    func evaluated(_ endpoints: [Endpoint]) async -> [Endpoint]
    /// Returns the IDs of the endpoints that have a stored token for the current launch.
    func withSecrets(among endpoints: [Endpoint]) async -> Set<EndpointID>
    /// Saves an app's session token. The token may belong to a launch that Patchbay has not seen yet; the port of that
    /// launch is optional.
    func saveSecret(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for principal: Principal
    ) async throws
}

extension AccessStore: EndpointApprovalStore {
    package func evaluated(_ endpoints: [Endpoint]) async -> [Endpoint] {
        endpoints.map { endpoint in
            // The broker of the other host approves its endpoints.
            guard !endpoint.isOnOtherHost else { return endpoint }
            var endpoint = endpoint
            let trust = approvals.trust(of: endpoint.id)
            for index in endpoint.routes.indices {
                let route = endpoint.routes[index]
                endpoint.routes[index].approval =
                    ApprovalPolicy.decision(on: route, trust.approval, denial: trust.denial).approval
            }
            endpoint.approval = ApprovalPolicy.approval(of: endpoint, trust)
            return endpoint
        }
    }

    package func withSecrets(among endpoints: [Endpoint]) async -> Set<EndpointID> {
        Set(endpoints.filter(secrets.isUsable).map(\.id))
    }

    package func saveSecret(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for principal: Principal
    ) async throws {
        try await secrets.set(
            secret,
            of: endpoint,
            on: port,
            isForUnseen: isForUnseen,
            by: principal.actor,
            from: principal.source
        )
    }
}
