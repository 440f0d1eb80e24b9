import AccessControl
import Apps
import HummingbirdCore
import Model

/// `/v1/endpoints/{id}/pages`.
enum WebPageRoutes {
    /// Lists the pages of a DevTools server. The URLs have the address of the caller's tunnel to the endpoint, or else of
    /// its network route.
    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await EndpointKindRoutes.endpoint(of: .web, for: "have pages", request)
        let authority = await EndpointKindRoutes.tunnelAuthority(to: endpoint, request)
        var reason = "it has no route"
        for route in request.services.accessStore.secrets.access(to: endpoint).routes.map(\.route) {
            do {
                let pages = try await request.services.webPages(route)
                return try .json(WebPages(pages, at: authority ?? route.networkAuthority))
            } catch let error as DialError {
                reason = error.description
            } catch let error as DevToolsError { reason = error.description }
        }
        throw Problem(.unavailable, "\(endpoint.id) lists no pages: \(reason)")
    }
}
