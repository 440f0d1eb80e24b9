package import Model

/// The leases that the clients of the broker take, see and end.
///
/// `LeaseService` has the leases of this host. In a team, the leases of the module `Team` add those that other hosts grant
/// for their own endpoints.
package protocol LeaseAuthority: Sendable {
    /// Takes a lease, or renews the client's own lease.
    ///
    /// - Parameters:
    ///   - endpoint: An endpoint that the principal may call.
    ///   - principal: The client.
    ///   - seconds: The length, from 1 to `LeaseSpec.maxSeconds`.
    ///   - wait: The time to wait while another client has the lease. Clients wait in the order of their requests.
    ///   - note: The reason, which other clients see.
    ///   - renewing: The ID of the client's lease to renew; nil to take a lease if the client has none.
    /// - Returns: The lease.
    /// - Throws: `AccessError.leased` after the wait time, `.outOfRange`, `.limit`, `.leaseNeedsChangingTools`,
    ///   `.claimNotStored`. `.notFound` if the lease to renew has ended, and `.refused` if the grant has ended.
    ///   `CancellationError`. For an endpoint of another host, its `Problem` or an error of the connection.
    func take(
        _ endpoint: Endpoint,
        for principal: Principal,
        seconds: Int,
        wait: Duration,
        note: SanitizedText?,
        renewing: String?
    ) async throws -> Lease

    /// Ends a lease. Only its holder and an owner may do that; the end by an owner is recorded in the audit log.
    ///
    /// - Parameters:
    ///   - id: The ID of the lease. That of another host's lease ends with the host, and that of this host's may.
    ///   - endpoints: The endpoints that the principal may see. The error names the holder of their leases only.
    ///   - principal: The client.
    /// - Throws: `AccessError.notFound`, `.notLeaseHolder`; for a lease of another host as `take`.
    func end(_ id: String, among endpoints: [Endpoint], by principal: Principal) async throws

    /// Ends the principal's own lease of an endpoint, if there is one. Ignores errors of another host: the lease then ends
    /// with its time.
    func release(_ endpoint: Endpoint, by principal: Principal) async

    /// Looks up the lease of an endpoint.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint, with the lease that this broker knows.
    ///   - principal: The client.
    /// - Returns: The lease; nil without one.
    /// - Throws: For an endpoint of another host as `take`, and after 2 seconds without an answer.
    func lease(of endpoint: Endpoint, for principal: Principal) async throws -> Lease?

    /// Returns the held leases of endpoints. A host that does not answer is represented by its claims, without the ends of
    /// the leases.
    func held(among endpoints: [Endpoint], for principal: Principal) async -> [Lease]
}

extension LeaseService: LeaseAuthority {
    package func lease(of endpoint: Endpoint, for principal: Principal) -> Lease? { endpoint.lease }

    package func held(among endpoints: [Endpoint], for principal: Principal) -> [Lease] {
        leases(of: endpoints, for: principal)
    }
}
