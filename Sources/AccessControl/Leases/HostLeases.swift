package import Model

/// The leases that the brokers of other hosts of the team grant for their own endpoints.
package protocol HostLeases: Sendable {
    /// Takes or renews a lease of an endpoint of another host. Its broker has the queue of the waiting clients.
    ///
    /// - Parameters:
    ///   - spec: The request. The IDs are those of the other broker.
    ///   - host: The host of the endpoint.
    ///   - principal: The client of this broker.
    /// - Returns: The lease, with the IDs of the other broker.
    /// - Throws: The `Problem` of the other broker, an error of the connection, or `CancellationError`.
    func take(_ spec: LeaseSpec, on host: HostName, for principal: Principal) async throws -> Lease

    /// Ends a lease of another host.
    ///
    /// - Throws: As `take`.
    func end(_ id: String, on host: HostName, for principal: Principal) async throws

    /// Returns the leases of a host that the client may see, with the IDs of the other broker.
    ///
    /// - Throws: As `take`, and after 2 seconds without an answer.
    func list(on host: HostName, for principal: Principal) async throws -> [Lease]

    /// Returns the lease of an endpoint, with the IDs of the other broker; nil without one.
    ///
    /// - Throws: As `list`.
    func lease(of endpoint: EndpointID, on host: HostName, for principal: Principal) async throws -> Lease?
}

/// The leases of other hosts' endpoints.
extension LeaseService {
    /// Takes a lease of another host's endpoint, as `take` does for an endpoint of this broker.
    func take(_ spec: LeaseSpec, on host: HostName, for principal: Principal) async throws -> Lease {
        guard let hosts else { throw AccessError.notFound("\(spec.endpoint) belongs to the host \(host)") }
        return try await hosts.take(spec, on: host, for: principal).on(host)
    }

    /// Ends a lease of another host.
    ///
    /// - Throws: `AccessError.notFound` without a team; errors of `HostLeases.end`.
    package func end(_ id: String, on host: HostName, by principal: Principal) async throws {
        guard let hosts else { throw AccessError.notFound("this broker belongs to no team with a host \(host)") }
        try await hosts.end(id, on: host, for: principal)
    }

    /// Ends the principal's own lease of an endpoint of any host, if there is one. Ignores errors of another host: the lease
    /// then ends with its time.
    package func release(_ endpoint: Endpoint, by principal: Principal) async {
        guard let host = endpoint.id.host else { return releaseOwn(endpoint, by: principal) }
        guard let lease = try? await lease(of: endpoint, for: principal), lease.isOwn else { return }
        let (id, owner) = Lease.parts(ofID: lease.id)
        if owner == host { try? await hosts?.end(id, on: host, for: principal) }
    }

    /// Returns the lease of an endpoint of any host.
    ///
    /// Without a claim, the host of the endpoint is asked. It leases endpoints without a phone also while the registry is
    /// unreachable.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint, with the lease that this broker knows.
    ///   - principal: The client.
    /// - Returns: The lease; nil without one.
    /// - Throws: Errors of `HostLeases.lease`.
    package func lease(of endpoint: Endpoint, for principal: Principal) async throws -> Lease? {
        if let lease = endpoint.lease { return lease }
        guard let hosts, let host = endpoint.id.host else { return nil }
        return try await hosts.lease(of: endpoint.id.onItsHost, on: host, for: principal)?.on(host)
    }

    /// Returns the held leases of endpoints of all hosts. A host that does not answer is represented by its claims, without
    /// the ends of the leases.
    package func allLeases(of endpoints: [Endpoint], for principal: Principal) async -> [Lease] {
        let known = leases(of: endpoints, for: principal)
        guard let hosts else { return known }
        let others = Set(known.compactMap { Lease.parts(ofID: $0.id).host })
        let complete = await withTaskGroup(of: [Lease].self) { group -> [String: Lease] in
            for host in others {
                group.addTask {
                    let leases = try? await hosts.list(on: host, for: principal)
                    return leases?.map { $0.on(host) } ?? []
                }
            }
            var complete: [String: Lease] = [:]
            for await leases in group { for lease in leases { complete[lease.id] = lease } }
            return complete
        }
        return known.map { complete[$0.id] ?? $0 }
    }
}
