import Hummingbird
package import Model

/// Lists the brokers that advertise themselves on the network.
package protocol NearbyBrokerProvider: Sendable {
    func brokers() async -> [NearbyBroker]
}

/// `/v1/brokers`.
enum BrokerRoutes {
    /// Lists the other brokers on the network.
    @Sendable static func list(_ request: APIRequest) async throws -> Response {
        try request.json(ListResponse(await request.services.brokers.brokers()))
    }
}
