package import Model
import NIOHTTP1

/// Exclusive use of endpoints and phones.
package struct LeaseClient: Sendable {
    let client: any APIClient

    /// The time in which the broker notices that another host is cut off.
    private static let hostTime = Duration.seconds(20)

    /// Returns the leases of the endpoints that the client may see, or only of one endpoint.
    package func list(of endpoint: EndpointID? = nil) async throws -> [Lease] {
        let request = OutgoingRequest(method: .GET, path: ["leases"], query: [("endpoint", endpoint?.text)])
        return try await client.response(to: request, as: ListResponse<Lease>.self).items
    }

    /// Returns the lease of an endpoint of any host; nil without one.
    ///
    /// - Throws: `ClientError`, also if the host of the endpoint does not answer.
    package func lease(of endpoint: Endpoint) async throws -> Lease? {
        if let lease = endpoint.lease { return lease }
        // The list has leases of other hosts only if they are in the registry of the team.
        return endpoint.isOnOtherHost ? try await list(of: endpoint.id).first : nil
    }

    /// Takes a lease, or renews the client's own lease.
    ///
    /// - Parameter spec: The endpoint, the length, and the time that the broker waits for another client.
    /// - Returns: The lease.
    /// - Throws: `ClientError`; the problem `leased` names the client that has the lease.
    package func take(_ spec: LeaseSpec) async throws -> Lease {
        let request = OutgoingRequest(method: .POST, path: ["leases"], body: try client.body(spec))
        return try await client.response(to: request, extraTimeout: Self.hostTime + .seconds(spec.waitSeconds ?? 0))
    }

    /// Ends a lease. An owner may end the lease of any client.
    package func end(_ id: String) async throws {
        let request = OutgoingRequest(method: .DELETE, path: ["leases", id])
        _ = try await client.bytes(of: request, extraTimeout: Self.hostTime)
    }
}
