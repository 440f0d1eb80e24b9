package import Model
import NIOHTTP1

/// Exclusive use of endpoints and phones.
package struct LeaseClient: Sendable {
    let client: PatchbayClient

    /// Returns the leases of the endpoints that the client may see.
    package func list() async throws -> [Lease] { try await client.items(at: "leases") }

    /// Takes a lease, or renews the client's own lease.
    ///
    /// - Parameter spec: The endpoint, the length, and the time that the broker waits for another client.
    /// - Returns: The lease.
    /// - Throws: `ClientError`; the problem `leased` names the client that has the lease.
    package func take(_ spec: LeaseSpec) async throws -> Lease {
        let request = OutgoingRequest(method: .POST, path: ["leases"], body: try client.body(spec))
        return try await client.response(to: request, extraTimeout: .seconds(spec.waitSeconds ?? 0))
    }

    /// Ends a lease. An owner may end the lease of any client.
    package func end(_ id: String) async throws {
        try await client.perform(OutgoingRequest(method: .DELETE, path: ["leases", id]))
    }
}
