package import Model
import ServiceLifecycle
package import SystemIO

/// Checks every few seconds that the listed endpoints still respond. Bonjour reports a lost service after minutes or
/// never.
///
/// A probe is a TCP connection that is closed at once. It needs no secret and costs the app nothing. An endpoint with an
/// open connection is not probed if its server may accept one client and drop the old one.
package struct LivenessProber: Service {
    private let store: any LivenessStore
    private let dialer: any Dialer
    /// Returns true if a connection over this route is open: of a tunnel, a call or a session.
    private let isInUse: @Sendable (Route) -> Bool
    private let clock = PollerClock()

    /// The maximum number of endpoints probed at once.
    ///
    /// It equals `EndpointLimits.perAddress`, the number that one dead host may have listed. Their timeouts then
    /// run in parallel.
    static let maxConcurrentProbes = 64
    /// The timeout of one route: 3 s. The kernel needs 3.07 s to detect that an address does not answer ARP.
    static let timeout = Duration.seconds(3)
    /// The delay before the next route is tried in parallel (Connection Attempt Delay, RFC 8305), and the maximum delay
    /// of any route.
    ///
    /// A probe takes at most 4 s for any number of dead addresses. If the first route responds at once, the others are
    /// not dialled.
    static let connectionAttemptDelay = Duration.milliseconds(250)
    static let maxAttemptDelay = Duration.seconds(1)

    /// - Parameters:
    ///   - store: The endpoints, and the receiver of results.
    ///   - dialer: Opens the connections.
    ///   - isInUse: Returns true if a connection over this route is open: of a tunnel, a call or a session.
    package init(
        store: any LivenessStore,
        dialer: any Dialer,
        isInUse: @escaping @Sendable (Route) -> Bool = { _ in false }
    ) {
        self.store = store
        self.dialer = dialer
        self.isInUse = isInUse
    }

    /// Probes the endpoints that are due, until graceful shutdown or cancellation.
    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            let start = clock.now
            var (schedule, random) = (ProbeSchedule(), SystemRandomNumberGenerator())
            var revision: UInt64?
            while true {
                if let list = await store.list(ifChangedSince: revision) {
                    schedule.update(list.endpoints)
                    revision = list.revision
                }
                let now = start.duration(to: clock.now)
                let watched = await store.watched()
                await probe(schedule.due(at: now, watched: watched, isInUse: isInUse, using: &random))
                try await clock.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Probes one endpoint and reports the result to the store.
    package func probe(_ endpoint: Endpoint) async {
        guard !Task.isCancelled else { return }
        // An unapproved advertisement may name any address, so it is never dialled, not even by a probe.
        let routes = endpoint.approvedRoutes.map(\.route)
        guard !routes.isEmpty || endpoint.routes.isEmpty else { return }
        let failure =
            routes.isEmpty ? DialError(.noRoute, "no route to \(endpoint.id) is known") : await attempt(routes)
        // A probe interrupted by shutdown says nothing about the endpoint.
        guard !Task.isCancelled else { return }
        await store.report(failure, of: endpoint.id)
    }

    private func probe(_ endpoints: [Endpoint]) async {
        await withTaskGroup { group in
            var waiting = endpoints[...]
            for endpoint in waiting.prefix(Self.maxConcurrentProbes) { group.addTask { await probe(endpoint) } }
            waiting = waiting.dropFirst(Self.maxConcurrentProbes)
            while await group.next() != nil {
                if let endpoint = waiting.popFirst() { group.addTask { await probe(endpoint) } }
            }
        }
    }

    /// Tries all routes, each a little later than the previous one, until one responds.
    ///
    /// - Returns: The error of the best route if no route works; nil otherwise.
    private func attempt(_ routes: [Route]) async -> DialError? {
        if let only = routes.first, routes.count == 1 { return await attempt(only) }
        return await withTaskGroup(of: (Int, DialError?).self) { group in
            for (index, route) in routes.enumerated() {
                group.addTask {
                    // The sleep is cancelled when another route has responded.
                    try? await clock.sleep(for: min(Self.connectionAttemptDelay * index, Self.maxAttemptDelay))
                    return (index, await attempt(route))
                }
            }
            var best: (index: Int, failure: DialError)?
            for await (index, failure) in group {
                guard let failure else {
                    group.cancelAll()
                    return nil
                }
                if best.map({ index < $0.index }) ?? true { best = (index, failure) }
            }
            return best?.failure
        }
    }

    private func attempt(_ route: Route) async -> DialError? {
        do {
            try Task.checkCancellation()
            let isReached = try await withTimeout(Self.timeout, clock: clock) { [dialer] in
                let connection = try await dialer.dial(route)
                _ = consume connection
                return true
            }
            return isReached == nil ? DialError(.timedOut, "\(route) did not answer within 3 s") : nil
        } catch let failure as DialError {
            return failure
        } catch {
            return DialError(.failed, "\(route) could not be probed: \(error)")
        }
    }
}

/// The registry as the liveness prober uses it: the endpoints to probe, the watched endpoints, and the receiver of
/// results.
package protocol LivenessStore: Sendable {
    /// Returns the endpoints and the revision; nil if `revision` is current.
    func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)?
    /// Returns the endpoints that a client watches now.
    func watched() async -> WatchedEndpoints
    /// Records the result of a probe; nil means success.
    func report(_ failure: DialError?, of id: EndpointID) async
}

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
/// after 2 s. Three failures therefore fit in 15 s, even if each takes the kernel's full 3 s to detect a dead host.
struct ProbeSchedule: Sendable {
    /// The interval for a watched endpoint that is not suspect.
    static let whileOnline = Duration.seconds(15)
    /// The interval for an unwatched endpoint that is not suspect.
    static let whileUnwatched = Duration.seconds(60)
    /// The interval for a suspect endpoint.
    static let whileSuspect = Duration.seconds(2)
    /// The maximum random share by which a pause is shortened, so that endpoints are not all probed at the same time.
    static let spread = 0.25

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
