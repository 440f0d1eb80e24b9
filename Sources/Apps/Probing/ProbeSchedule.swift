package import Model

/// The endpoints that are probed at the usual interval. The others are probed less often.
package enum WatchedEndpoints: Hashable, Sendable {
    case all
    case only(Set<EndpointID>)

    func contains(_ id: EndpointID) -> Bool {
        switch self {
        case .all: true
        case .only(let ids): ids.contains(id)
        }
    }
}

/// The times at which endpoints are probed.
///
/// An online endpoint is probed every 15 s, and every 60 s while no client watches it. A failed one is probed again
/// after 2 s. Three failures therefore fit in 15 s, even if each takes the kernel's full 3 s to detect a dead machine.
struct ProbeSchedule: Sendable {
    /// The interval for a watched endpoint that is not suspect.
    static let whileOnline = Duration.seconds(15)
    /// The interval for an unwatched endpoint that is not suspect.
    static let whileUnwatched = Duration.seconds(60)
    /// The interval for a suspect endpoint.
    static let whileSuspect = Duration.seconds(2)
    /// The maximum random share by which a pause is shortened, so that endpoints are not all probed at the same time.
    static let spread = 0.25
    /// The interval for an endpoint that is due and must not be dialled, because a connection to it is open.
    static let whileInUse = Duration.seconds(2)

    private struct Entry {
        var endpoint: Endpoint
        /// The time of the last probe; nil before the first.
        var last: Duration?
        /// The random factor of the pause, from `1 - spread` to 1.
        var share = 1.0
    }

    private var entries: [EndpointID: Entry] = [:]

    /// Replaces the set of endpoints.
    mutating func update(_ endpoints: [Endpoint]) {
        var updated: [EndpointID: Entry] = [:]
        for endpoint in endpoints where Self.isProbed(endpoint) {
            var entry = entries[endpoint.id] ?? Entry(endpoint: endpoint)
            entry.endpoint = endpoint
            updated[endpoint.id] = entry
        }
        entries = updated
    }

    /// Returns the endpoints that are due and marks them as probed.
    ///
    /// - Parameters:
    ///   - now: The time since any fixed moment.
    ///   - watched: The endpoints that are probed every `whileOnline`.
    ///   - isInUse: Returns true for a route that must not be dialled now. Its endpoint stays due.
    ///   - random: The source of the random factors.
    /// - Returns: The due endpoints, longest waiting first.
    mutating func due(
        at now: Duration,
        watched: WatchedEndpoints,
        isInUse: (Route) -> Bool = { _ in false },
        using random: inout some RandomNumberGenerator
    ) -> [Endpoint] {
        let due = entries.values.filter { entry in entry.last.map { now - $0 >= pause(of: entry, watched) } ?? true }
            .filter { entry in
                entry.endpoint.kind.acceptsManyClients || !entry.endpoint.routes.contains { isInUse($0.route) }
            }
            .sorted { ($0.last ?? .zero, $0.endpoint.id) < ($1.last ?? .zero, $1.endpoint.id) }
            .map(\.endpoint)
        for endpoint in due {
            entries[endpoint.id]?.last = now
            entries[endpoint.id]?.share = Double.random(in: (1 - Self.spread)...1, using: &random)
        }
        return due
    }

    /// Calculates when to call `due` again.
    ///
    /// An endpoint that is still due after a call of `due` is in use. It is checked again after `whileInUse`.
    ///
    /// - Parameters:
    ///   - now: The time of the last call of `due`.
    ///   - watched: The endpoints that are probed every `whileOnline`.
    /// - Returns: A time after `now`; nil if no endpoint is probed.
    func nextDue(after now: Duration, watched: WatchedEndpoints) -> Duration? {
        entries.values.map { entry in
            let time = entry.last.map { $0 + pause(of: entry, watched) } ?? now
            return time > now ? time : now + Self.whileInUse
        }.min()
    }

    private func pause(of entry: Entry, _ watched: WatchedEndpoints) -> Duration {
        if entry.endpoint.state == .suspect { return Self.whileSuspect }
        return (watched.contains(entry.endpoint.id) ? Self.whileOnline : Self.whileUnwatched) * entry.share
    }

    /// Returns true for endpoints with an approved network route. `DevicePortScanner` checks device ports. Unapproved
    /// addresses and apps that connected to Patchbay are not dialled.
    private static func isProbed(_ endpoint: Endpoint) -> Bool {
        endpoint.state != .blocked && endpoint.approvedRoutes.contains { $0.route.isNetwork && !$0.route.isInbound }
    }
}

/// The times at which device ports are tried.
struct PortSchedule: Sendable {
    /// The interval while a client is present, and after a failure.
    static let urgent = Duration.seconds(1)
    /// The intervals without a client: for ports without a server, and for ports with a server.
    static let idle = Duration.seconds(3)
    static let idleFound = Duration.seconds(15)

    private var tried: [USBRoute: ContinuousClock.Instant] = [:]

    /// Returns true and marks the port as tried if the port is due. A new port is due at once.
    mutating func markTriedIfDue(_ port: USBRoute, isUrgent: Bool, isFound: Bool, at now: ContinuousClock.Instant)
        -> Bool
    {
        let pause = isUrgent ? Self.urgent : isFound ? Self.idleFound : Self.idle
        if let last = tried[port], now - last < pause { return false }
        tried[port] = now
        return true
    }

    /// Removes the ports of all other devices.
    mutating func retain(_ devices: Set<UDID>) { tried = tried.filter { devices.contains($0.key.udid) } }
}
