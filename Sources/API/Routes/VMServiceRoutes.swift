import AccessControl
import HummingbirdCore
import Model

/// `/v1/endpoints/{id}/vm-service`.
enum VMServiceRoutes {
    /// Shows the URLs of a Dart VM service for its preferred approved network route, or on a cable for the caller's tunnel.
    /// The broker does not connect to the service: the Dart Development Service must be its only client.
    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await EndpointKindRoutes.endpoint(of: .dartVM, for: "have a VM service", request)
        let principal = request.principal
        let access = try await request.services.accessStore.secrets.read(
            of: endpoint,
            by: principal.actor,
            from: principal.source
        )
        let authority = await EndpointKindRoutes.tunnelAuthority(to: endpoint, request)
        let services = access.routes.compactMap { route in
            let code = route.secret?.reveal()
            return DartVMService(at: route.route, authCode: code)
                ?? authority.map { DartVMService(at: $0, authCode: code) }
        }
        guard let service = services.first else {
            guard access.routes.isEmpty else {
                throw Problem(
                    .unavailable,
                    "\(endpoint.id) is on a cable; its VM service has the address of a tunnel",
                    hint: "patchbay forward --endpoint \(endpoint.id)"
                )
            }
            throw Problem(.unavailable, "\(endpoint.id) is offline; its VM service has an address when the app is back")
        }
        return try .json(service)
    }
}

/// The checks of the routes that exist for one kind of endpoints.
enum EndpointKindRoutes {
    /// Returns the endpoint of the path, for a route that exists for one kind of endpoints. `purpose` is what only these
    /// endpoints do: "have pages".
    ///
    /// - Throws: `Problem` for another kind, and for an endpoint that is blocked or not approved.
    static func endpoint(
        of kind: EndpointKind,
        for purpose: String,
        _ request: APIRequest
    ) async throws -> Endpoint {
        let endpoint = try await request.endpoint()
        guard endpoint.kind == kind else {
            throw Problem(
                .badRequest,
                "\(endpoint.id) is an endpoint of kind \(endpoint.kind); only those of kind \(kind) \(purpose)"
            )
        }
        guard endpoint.state != .blocked else {
            let reason = endpoint.reason ?? "no route"
            throw Problem(.unavailable, "\(endpoint.id) is blocked and never connected to: \(reason)")
        }
        try await request.requireApproval(of: endpoint)
        return endpoint
    }

    /// Returns the address of a tunnel of the caller to an endpoint; nil without one at a port.
    static func tunnelAuthority(to endpoint: Endpoint, _ request: APIRequest) async -> String? {
        await request.tunnels().lazy.filter { $0.spec.target == .endpoint(endpoint.id) }.compactMap(\.authority).first
    }
}
