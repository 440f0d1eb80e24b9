import API
import Discovery
import Model

/// Publishing for the doors, with Bonjour's refusals said as problems.
struct BonjourAdvertisementPublisher: AdvertisementPublisher {
    /// Nil when discovery is turned off in the configuration.
    let source: BonjourSource?

    func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try await translated { try await $0.advertise(spec) }
    }

    func advertisements() async -> [Advertisement] { await source?.advertisements() ?? [] }

    func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        try await translated { try await $0.update(id, txt: txt) }
    }

    func withdraw(_ id: String) async throws {
        try await translated { try await $0.withdraw(id) }
    }

    func changes() async -> AsyncStream<Void> {
        source?.advertisementChanges() ?? AsyncStream { $0.finish() }
    }

    private func translated<Value>(_ call: (BonjourSource) async throws -> Value) async throws -> Value {
        guard let source else {
            throw Problem(
                .unavailable,
                "Bonjour is turned off by discovery.enabled = false",
                next: "set discovery.enabled = true in the configuration, and restart the broker"
            )
        }
        do {
            return try await call(source)
        } catch let error as DiscoveryError {
            throw Problem(Self.code(of: error), error.description, next: error.next)
        }
    }

    private static func code(of error: DiscoveryError) -> Problem.Code {
        switch error {
        case .notPublishable: .badRequest
        case .noSuchAdvertisement: .notFound
        case .tooManyAdvertisements: .limit
        case .alreadyRun: .internalError
        }
    }
}
