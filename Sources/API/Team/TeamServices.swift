import Apps
import AccessControl
import FoundationEssentials
import HummingbirdCore
import Model
import Registry

/// The parts of the API that exist only on a host of a team.
package struct TeamServices: Sendable {
    package let members: any MemberDirectory
    package let proxy: TeamProxy
    package let connections: MemberConnections

    package init(members: any MemberDirectory, proxy: TeamProxy, connections: MemberConnections) {
        (self.members, self.proxy, self.connections) = (members, proxy, connections)
    }
}

/// The way in which a route serves a request for an endpoint of another host.
enum OtherHosts: Hashable, Sendable {
    /// This broker serves the request by what it knows, or the handler decides.
    case here
    /// The broker of the endpoint's host serves the request.
    case forwarded
    /// The request is refused, because only an owner on that host may make it.
    case refused
}

extension APIRoute {
    /// The paths for which brokers send requests to each other, besides those of `OtherHosts.forwarded`.
    private static let pathsBetweenHosts: Set = [
        "/v1/endpoints/{id}/probe", "/v1/leases", "/v1/leases/{id}", "/v1/streams", "/v1/artifacts/{sha}",
    ]

    /// Throws unless the principal may use the route. A client of another host uses only the routes to which its own
    /// broker sends requests.
    func authorize(_ principal: Principal) throws {
        if principal.member != nil, otherHosts != .forwarded, !Self.pathsBetweenHosts.contains(path) {
            throw Problem(
                .forbidden,
                "the team listener serves hosts only requests for apps, streams, leases and artifacts",
                hint: "use the remote listener: patchbay remote status"
            )
        }
        try permission.authorize(principal)
    }
}

extension APIRequest {
    /// The ID of the path if the endpoint belongs to another host; nil for any other request.
    private var endpointOnOtherHost: EndpointID? {
        guard parameters["id"] != nil, let id = try? endpointID(), id.host != nil else { return nil }
        return id
    }

    /// Serves a request for an endpoint of another host, as its route says. Returns nil if the handler serves it.
    ///
    /// - Throws: `RegistryError` for an endpoint that the principal may not see; `HostError`, `Problem`.
    func forward(from route: APIRoute) async throws -> APIResponse? {
        guard route.otherHosts != .here, let id = endpointOnOtherHost, let host = id.host else { return nil }
        guard route.otherHosts == .forwarded else { throw RegistryError.onOtherHost(id, host) }
        let endpoint = try await endpoint(id)
        guard let team = services.team else { throw RegistryError.noSuchEndpoint(id.text) }
        do {
            return try await team.proxy.forward(
                self,
                to: route.path.replacing("{id}", with: endpoint.id.onItsHost.text),
                on: host,
                for: route.path.hasPrefix("/e/") ? principal.asMCPClient : principal
            )
        } catch let error as HostError {
            // As for an app of this broker: a call that may have been executed has a result.
            guard route.path.hasSuffix("/call"), let failure = error.unknownResult else { throw error }
            return .json(["schema": 1, "result": .object(failure.result(for: .human, at: endpoint.id))])
        }
    }

    /// Lets the broker of another host probe an endpoint, and returns the endpoint as this broker lists it.
    func probe(_ endpoint: Endpoint, on host: HostName) async throws -> APIResponse {
        guard let team = services.team else { throw RegistryError.noSuchEndpoint(endpoint.id.text) }
        let principal = principal
        let probed = try await whileConnected { try await team.proxy.probe(endpoint.id, on: host, for: principal) }
        return try .json(services.leases.withLeases([principal.view(of: probed)], for: principal)[0])
    }
}
