package import Model
import ServiceLifecycle
package import SystemIO

/// Checks at intervals that the listed endpoints still respond. Bonjour reports a lost service after minutes or never.
///
/// A probe is a TCP connection that is closed at once. It needs no secret and costs the app nothing. An endpoint with an
/// open connection is not probed if its server may accept one client and drop the old one.
package struct LivenessProber: Service {
    private let store: any LivenessStore
    private let dialer: any Dialer
    /// Returns true if a connection over this route is open: of a tunnel, a call or a session.
    private let isInUse: @Sendable (Route) -> Bool
    /// The launches that are observed now. Their endpoints need no connection.
    private let launches: ObservedLaunches
    private let clock: any Clock<Duration>

    /// The maximum number of endpoints probed at once.
    ///
    /// It equals `EndpointLimits.perAddress`, the number that one dead machine may have listed. Their timeouts then
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
    /// The minimum time between two readings of the endpoints, which may change many times a second.
    static let minReadingInterval = Duration.milliseconds(500)

    /// - Parameters:
    ///   - store: The endpoints, and the receiver of results.
    ///   - dialer: Opens the connections.
    ///   - isInUse: Returns true if a connection over this route is open: of a tunnel, a call or a session.
    ///   - launches: The launches that are observed now.
    ///   - clock: Measures the intervals and timeouts.
    package init(
        store: any LivenessStore,
        dialer: any Dialer,
        isInUse: @escaping @Sendable (Route) -> Bool = { _ in false },
        launches: ObservedLaunches = ObservedLaunches(),
        clock: any Clock<Duration> = PollerClock()
    ) {
        self.store = store
        self.dialer = dialer
        self.isInUse = isInUse
        self.launches = launches
        self.clock = clock
    }

    /// Probes the endpoints that are due, until graceful shutdown or cancellation.
    ///
    /// Sleeps until the next endpoint is due or the store reports a change.
    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            let timer = ElapsedTimer(clock)
            var (schedule, random) = (ProbeSchedule(), SystemRandomNumberGenerator())
            var revision: UInt64?
            while true {
                // Subscribed first, so that no change after the reading is missed.
                let changes = await store.changes()
                if let list = await store.list(ifChangedSince: revision) {
                    schedule.update(list.endpoints)
                    revision = list.revision
                }
                let now = timer.elapsed
                let watched = await store.watched()
                await probe(schedule.due(at: now, watched: watched, isInUse: isInUse, using: &random))
                try await clock.sleep(for: Self.minReadingInterval)
                await wait(schedule.nextDue(after: now, watched: watched).map { $0 - timer.elapsed }, or: changes)
            }
        }
    }

    /// Waits until the time is over or one of the streams has an element or ends. Without a time, no timer is set.
    private func wait(_ pause: Duration?, or changes: [any AsyncSequence<Void, Never> & Sendable]) async {
        await withTaskGroup { group in
            if let pause { group.addTask { try? await clock.sleep(for: pause) } }
            for change in changes { group.addTask { for await _ in change { break } } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Probes one endpoint and reports the result to the store.
    package func probe(_ endpoint: Endpoint) async {
        guard !Task.isCancelled else { return }
        // An unapproved advertisement may name any address, so it is never dialled, not even by a probe.
        let routes = endpoint.approvedRoutes.map(\.route)
        guard !routes.isEmpty || endpoint.routes.isEmpty else { return }
        let failure =
            routes.isEmpty
            ? DialError(.noRoute, "no route to \(endpoint.id) is known")
            : await attempt(routes)
        // A probe interrupted by shutdown says nothing about the endpoint.
        guard !Task.isCancelled else { return }
        await store.report(failure, of: endpoint.id)
    }

    /// Probes an endpoint that is due. An idle connection that is still open replaces the probe.
    private func probeUnlessObserved(_ endpoint: Endpoint) async {
        for route in endpoint.approvedRoutes.map(\.route) {
            guard let observation = launches[route], observation.isContinuous else { continue }
            if await observation.isUnbroken() { return await store.report(nil, of: endpoint.id) }
        }
        await probe(endpoint)
    }

    private func probe(_ endpoints: [Endpoint]) async {
        await withTaskGroup { group in
            var waiting = endpoints[...]
            for endpoint in waiting.prefix(Self.maxConcurrentProbes) {
                group.addTask { await probeUnlessObserved(endpoint) }
            }
            waiting = waiting.dropFirst(Self.maxConcurrentProbes)
            while await group.next() != nil {
                if let endpoint = waiting.popFirst() { group.addTask { await probeUnlessObserved(endpoint) } }
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
    /// Subscribes to changes of the endpoints and to new watched endpoints.
    ///
    /// - Returns: Streams for one reader each. The end of a stream counts as a change.
    func changes() async -> [any AsyncSequence<Void, Never> & Sendable]
    /// Records the result of a probe; nil means success.
    func report(_ failure: DialError?, of id: EndpointID) async
}
