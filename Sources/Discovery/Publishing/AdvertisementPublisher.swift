package import Model

/// Publishes services over Bonjour. Refuses with `DiscoveryError`.
package protocol AdvertisementPublisher: Sendable {
    func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement
    func advertisements() async -> [Advertisement]
    func update(_ id: String, txt: TXTRecord) async throws -> Advertisement
    func withdraw(_ id: String) async throws
    /// Returns a stream that yields whenever an advertisement may have changed or been removed.
    func advertisementChanges() async -> AsyncStream<Void>
}

extension BonjourSource: AdvertisementPublisher {}
