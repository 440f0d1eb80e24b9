import Model

/// When each endpoint is probed next.
///
/// One that is online is asked seldom, and more seldom while no client watches it. One that failed is asked again at once, so
/// that three failures fit in 15 s even when each takes the kernel its full 3 s to notice a dead host.
struct ProbeSchedule: Sendable {
    static let whileOnline = Duration.seconds(15)
    static let whileUnwatched = Duration.seconds(60)
    static let whileSuspect = Duration.seconds(2)
    /// Each pause is shortened by a random part of up to this share, so that many endpoints are not probed at one moment.
    static let spread = 0.25

    private struct Entry {
        var endpoint: Endpoint
        /// The time of the last probe; nil before the first.
        var last: Duration?
        /// What is left of each pause, from `1 - spread` to 1.
        var share = 1.0
    }

    private var entries: [EndpointID: Entry] = [:]

    /// Takes in what is listed now.
    mutating func update(_ endpoints: [Endpoint]) {
        var updated: [EndpointID: Entry] = [:]
        for endpoint in endpoints where Self.isProbed(endpoint) {
            var entry = entries[endpoint.id] ?? Entry(endpoint: endpoint)
            entry.endpoint = endpoint
            updated[endpoint.id] = entry
        }
        entries = updated
    }

    /// Takes what is to be probed now.
    ///
    /// - Parameters:
    ///   - now: The time since any fixed moment.
    ///   - watched: What is probed every `whileOnline`.
    ///   - random: Where the shares of the pauses come from.
    /// - Returns: The endpoints that are due, those that have waited longest first; each is marked as probed.
    mutating func take(
        at now: Duration,
        watched: WatchedEndpoints,
        using random: inout some RandomNumberGenerator
    ) -> [Endpoint] {
        let due = entries.values.filter { entry in entry.last.map { now - $0 >= pause(of: entry, watched) } ?? true }
            .sorted { ($0.last ?? .zero, $0.endpoint.id) < ($1.last ?? .zero, $1.endpoint.id) }
            .map(\.endpoint)
        for endpoint in due {
            entries[endpoint.id]?.last = now
            entries[endpoint.id]?.share = Double.random(in: (1 - Self.spread)...1, using: &random)
        }
        return due
    }

    private func pause(of entry: Entry, _ watched: WatchedEndpoints) -> Duration {
        if entry.endpoint.state == .suspect { return Self.whileSuspect }
        return (watched.contains(entry.endpoint.id) ? Self.whileOnline : Self.whileUnwatched) * entry.share
    }

    /// Phones' ports are watched where they are found. An address that no owner approved is not dialled.
    private static func isProbed(_ endpoint: Endpoint) -> Bool {
        endpoint.state != .blocked && endpoint.approvedRoutes.contains { $0.route.isNetwork }
    }
}
