package import Model

/// What the doors need of the phones on the cable.
package protocol DeviceDesk: Sendable {
    func devices() async -> [Device]
    /// The list as it stands, then again after every change; only the newest waits for a slow reader.
    func deviceLists() async -> AsyncStream<[Device]>
}

/// What the doors need of Bonjour publishing. Refusals are thrown as `Problem`.
package protocol AdvertisementPublisher: Sendable {
    func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement
    func advertisements() async -> [Advertisement]
    func update(_ id: String, txt: TXTRecord) async throws -> Advertisement
    func withdraw(_ id: String) async throws
    /// Tells each time that an advertisement may have changed or gone.
    func changes() async -> AsyncStream<Void>
}

/// What the doors need of endpoints that a person wrote down.
package protocol StaticEndpointDesk: Sendable {
    func add(_ endpoint: StaticEndpoint) async throws -> Endpoint
    /// Takes back what `add` put there; false when the endpoint is none of those.
    func remove(_ id: EndpointID) async throws -> Bool
}
