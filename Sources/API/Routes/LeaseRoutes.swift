import AccessControl
import HummingbirdCore
import Model
import Registry

/// `/v1/leases`.
enum LeaseRoutes {
    static let listQuery: [APIRoute.Query] = [
        .string("endpoint", "Only the lease of this endpoint; its host in the team is asked")
    ]

    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        let (leases, principal) = (request.services.leaseAuthority, request.principal)
        if let id = request.query("endpoint") {
            let endpoint = try await request.endpoint(try request.endpointID(id))
            let lease = try await request.whileConnected { try await leases.lease(of: endpoint, for: principal) }
            return try .json(ListResponse(lease.map { [$0] } ?? []))
        }
        return try .json(ListResponse(await visible(to: request)))
    }

    /// Returns the leases of the endpoints that the client may see.
    static func visible(to request: APIRequest) async -> [Lease] {
        let visible = request.visible(await request.services.endpoints.endpoints)
        return await request.services.leaseAuthority.held(among: visible, for: request.principal)
    }

    /// Takes or renews a lease. A client that disconnects while it waits leaves the queue.
    @Sendable static func take(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(LeaseSpec.self)
        let wait = spec.waitSeconds ?? 0
        guard (0...LeaseSpec.maxWaitSeconds).contains(wait) else {
            throw Problem(.badRequest, "\"waitSeconds\" must be from 0 to \(LeaseSpec.maxWaitSeconds), not \(wait)")
        }
        if wait > 0 { try request.requireStreamPlace() }
        let endpoint = try await request.endpoint(spec.endpoint)
        let (leases, principal) = (request.services.leaseAuthority, request.principal)
        do {
            let lease = try await request.whileConnected {
                try await leases.take(
                    endpoint,
                    for: principal,
                    seconds: spec.seconds ?? LeaseSpec.standardSeconds,
                    wait: .seconds(wait),
                    note: spec.note,
                    renewing: spec.renew
                )
            }
            return try .created(lease)
        } catch let error as CancellationError {
            // The lease may have been granted at the moment of the disconnect.
            if endpoint.lease?.isOwn != true, !endpoint.isOnOtherHost { await leases.release(endpoint, by: principal) }
            throw error
        }
    }

    /// Ends a lease. The ID of a lease of another host ends with that host.
    @Sendable static func end(_ request: APIRequest) async throws -> APIResponse {
        let id = try request.parameter("id")
        let visible = request.visible(await request.services.endpoints.endpoints)
        try await request.services.leaseAuthority.end(id, among: visible, by: request.principal)
        return .noContent
    }
}
