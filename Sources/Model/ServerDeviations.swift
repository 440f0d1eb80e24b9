import Synchronization

/// Counts what was repaired in the messages of apps' servers, by endpoint, since the launch of each app.
///
/// The counts are for people who fix the server. They change no decision.
package final class ServerDeviations: Sendable {
    private let counts = Mutex<[EndpointID: [ServerDeviation.Kind: Int]]>([:])

    package init() {}

    /// Records that a deviation was repaired.
    package func record(_ kind: ServerDeviation.Kind, of id: EndpointID) {
        counts.withLock { $0[id, default: [:]][kind, default: 0] += 1 }
    }

    /// Forgets the counts of an app that was launched again or removed.
    package func removeAll(of id: EndpointID) { counts.withLock { $0[id] = nil } }

    /// Returns the endpoints with the deviations of their servers.
    package func described(_ endpoints: [Endpoint]) -> [Endpoint] {
        let counts = counts.withLock { $0 }
        guard !counts.isEmpty else { return endpoints }
        return endpoints.map { endpoint in
            guard let found = counts[endpoint.id] else { return endpoint }
            var described = endpoint
            described.deviations = ServerDeviation.Kind.allCases.compactMap { kind in
                found[kind].map { ServerDeviation(kind, count: $0) }
            }
            return described
        }
    }
}
