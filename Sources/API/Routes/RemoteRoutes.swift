import Discovery
import Model

/// `/v1/remote`.
enum RemoteRoutes {
    /// Shows the listener, also while it is off.
    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        try .json(await request.services.remote.status())
    }

    /// Turns the remote listener on or off.
    @Sendable static func set(_ request: APIRequest) async throws -> APIResponse {
        let spec = try await request.body(RemoteSpec.self)
        return try .json(await request.services.remote.set(spec))
    }
}

/// `/v1/brokers`.
enum BrokerRoutes {
    /// Lists the other brokers on the network.
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.brokers.brokers()))
    }
}
