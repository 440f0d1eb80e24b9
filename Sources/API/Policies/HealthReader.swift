import Model

/// The degraded parts for `/health`, which every client may read.
///
/// Reading the status of the broker takes some file reads. So it is read at most once in a second, whatever the
/// number of requests is. The state folder is always checked, because that takes none.
actor HealthReader {
    private static let lifetime = Duration.seconds(1)

    private var parts: [BrokerPart] = []
    private var readAt: ContinuousClock.Instant?

    func degradedParts(_ services: APIServices) async -> [BrokerPart] {
        if readAt.map({ .now - $0 > Self.lifetime }) ?? true {
            // Set first, so that other requests meanwhile get the last result.
            readAt = .now
            parts = await services.status().unhealthyParts
        }
        let isWritable = await services.storageProblems().isEmpty
        return BrokerPart.allCases.filter { $0 == .state ? !isWritable : parts.contains($0) }
    }
}
