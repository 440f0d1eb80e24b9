import Hummingbird
package import Model

/// `/v1/configuration`: the keys of the broker's configuration with their effective values.
enum ConfigurationRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> Response {
        try request.json(ListResponse(await request.services.configuration.entries()))
    }
}

/// Lists the configuration that is in effect.
package protocol ConfigurationProvider: Sendable {
    func entries() async -> [ConfigurationEntry]
}
