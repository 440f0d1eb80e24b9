import AccessControl
import HummingbirdCore
import Model
import NIOCore
import Registry

/// `/v1/status`, `/health`, `/openapi.json`.
enum StatusRoutes {
    /// The response to `GET /health`. It has no paths and no reasons, because this route is public.
    struct Health: Encodable {
        let status: String
        let version = Version.text
        /// The parts that do not work, or work only in part.
        let degraded: [BrokerPart]
        /// One sentence about them; nil if there are none.
        let detail: String?

        init(_ degraded: [BrokerPart]) {
            self.degraded = degraded
            status = degraded.isEmpty ? "ok" : "degraded"
            let names = degraded.map(\.rawValue).joined(separator: ", ")
            let refusal =
                degraded.contains(.state) ? "the state folder cannot be written, so changes are refused; " : ""
            detail = degraded.isEmpty ? nil : "\(refusal)degraded: \(names); an owner's `patchbay status` says why"
        }
    }

    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        try .json(await status(request))
    }

    /// Returns the status as the client may see it.
    static func status(_ request: APIRequest) async -> BrokerStatus {
        var status = await request.services.status()
        let leases = request.services.leases.leases(
            of: request.visible(await request.services.endpoints.endpoints),
            for: request.principal
        )
        status.leases = leases.isEmpty ? nil : leases.count
        return request.principal.isOwner ? status : await request.redacted(status)
    }

    @Sendable static func health(_ request: APIRequest) async throws -> APIResponse {
        try .json(Health(await request.services.healthReader.degradedParts(request.services)))
    }

    @Sendable static func openAPI(_ request: APIRequest) async throws -> APIResponse {
        .body(ByteBuffer(string: OpenAPIDocument.text), type: "application/json")
    }
}

extension APIRequest {
    /// Returns the status for the holder of a grant: counts of visible objects only.
    fileprivate func redacted(_ status: BrokerStatus) async -> BrokerStatus {
        var status = status
        status.pid = nil
        status.findings = nil
        status.storage = nil
        status.remote = nil
        status.streams = nil
        let endpoints = visible(await services.endpoints.endpoints).combined
        status.endpoints = Dictionary(grouping: endpoints, by: \.state.rawValue).mapValues(\.count)
        status.tunnels = await tunnels().count
        let hosts = Set(endpoints.compactMap(\.host?.name))
        status.hosts?.removeAll { !principal.canSeeAllEndpoints && !hosts.contains($0.name) }
        if !principal.canSeeAllEndpoints {
            status.devices = 0
            status.sources = []
        }
        return status
    }
}

/// `/v1/configuration`: the keys of the broker's configuration with their effective values.
enum ConfigurationRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.configuration()))
    }
}
