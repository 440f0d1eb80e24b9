package import Logging
package import Model
import ServiceLifecycle
import Synchronization

/// The Bonjour source: browses services through Avahi, reports them as sightings, and publishes advertisements.
///
/// Avahi and D-Bus may be absent, stop and return at any time. The source reports this in its status and events and
/// keeps running.
package final class BonjourSource: Service {
    /// The sightings, for a single consumer. The stream ends after `run()`.
    ///
    /// Pending events are coalesced per sighting, so a slow consumer still receives the latest state of each.
    /// `sourceReconciled` marks the end of the initial sync and of each sync after a loss of Avahi.
    package let events: AsyncStream<SightingEvent>

    /// The time limit for Avahi to publish, update or withdraw. Registering takes 0.8 s, and each rename takes the same
    /// again.
    static let publishingLimit = Duration.seconds(5)

    private let options: DiscoveryOptions
    private let timing: AvahiEngine.Timing
    private let logger: Logger
    private let clock: any Clock<Duration>
    private let sightingQueue = SightingQueue()
    private let store = AdvertisementStore()
    private let bonjourStatus = BonjourStatus()
    private let silentRoutes = UnresponsiveRoutes()
    private let localServices: LocalServiceVerifier
    private let executor = AvahiThreadExecutor()
    private let hasRun = Atomic(false)

    package convenience init(options: DiscoveryOptions, logger: Logger) {
        self.init(options: options, timing: AvahiEngine.Timing(), clock: ContinuousClock(), logger: logger)
    }

    init(options: DiscoveryOptions, timing: AvahiEngine.Timing, clock: any Clock<Duration>, logger: Logger) {
        self.options = options
        self.timing = timing
        self.clock = clock
        self.logger = logger
        localServices = LocalServiceVerifier(logger: logger)
        events = sightingQueue.events
    }

    /// Browses and publishes until graceful shutdown or cancellation.
    ///
    /// On return, all advertisements are withdrawn with a goodbye, all libavahi objects are freed and the thread has
    /// ended. The exception is a thread that is blocked in a call at that moment: the thread cleans up when the call
    /// returns.
    ///
    /// - Throws: `DiscoveryError.alreadyRun`.
    package func run() async throws {
        guard hasRun.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            throw DiscoveryError.alreadyRun
        }
        let engine = AvahiEngine(
            executor: executor,
            options: options,
            timing: timing,
            sightingQueue: sightingQueue,
            store: store,
            bonjourStatus: bonjourStatus,
            silentRoutes: silentRoutes,
            localServices: localServices,
            logger: logger
        )
        store.setAvailable(true)
        // The executor of the engine runs each cycle on its own thread.
        executor.start { poll, isLast in engine.assumeIsolated { $0.runCycle(on: poll, isLast: isLast) } }
        await withDiscardingTaskGroup { group in
            group.addTask { [localServices, executor] in await localServices.run { executor.wakeUp() } }
            // Throws on cancellation, which is handled like a graceful shutdown.
            try? await gracefulShutdown()
            group.cancelAll()
        }
        executor.stop()
        if bonjourStatus.blockedFor < BonjourStatus.slowCallThreshold { await executor.ended() }
        store.setAvailable(false)
        bonjourStatus.report(.stopped)
        sightingQueue.finish()
    }

    /// The status of the source. Returns at once, even while libavahi blocks.
    package func status() async -> SourceStatus { bonjourStatus.status }

    /// Looks up the services at `routes` again, because they do not respond: their port may have changed.
    ///
    /// Avahi does not report a change made less than a second after the advertisement, except to a new lookup.
    package func resolveAgain(at routes: [Route]) {
        silentRoutes.add(routes)
        executor.wakeUp()
    }

    /// Publishes a service until `withdraw` or until the source stops.
    ///
    /// Returns when the service is published (perhaps under another name), has failed, or waits for Avahi, and after 5
    /// s at the latest. `state` tells which.
    ///
    /// - Throws: `DiscoveryError`.
    package func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        let id = try store.add(spec)
        return try await waitUntilStable(id)
    }

    /// All advertisements, in the order in which they were added.
    package func advertisements() async -> [Advertisement] { store.advertisements }

    /// A stream that yields when an advertisement may have changed its state or name or has been removed.
    package func advertisementChanges() -> AsyncStream<Void> { store.changes() }

    /// Replaces the TXT record. Updates within one second are combined.
    ///
    /// - Throws: `DiscoveryError`. The old record then stays published.
    package func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        try store.update(id, txt: txt)
        return try await waitUntilStable(id)
    }

    /// Withdraws an advertisement. Waits up to 5 s for Avahi to send its goodbye.
    ///
    /// - Throws: `DiscoveryError.noSuchAdvertisement`.
    package func withdraw(_ id: String) async throws {
        try store.remove(id)
        executor.wakeUp()
        _ = await store.waitUntilStable(id, within: Self.publishingLimit, clock: clock)
    }

    private func waitUntilStable(_ id: String) async throws -> Advertisement {
        executor.wakeUp()
        guard let advertisement = await store.waitUntilStable(id, within: Self.publishingLimit, clock: clock) else {
            throw DiscoveryError.noSuchAdvertisement(id: id)
        }
        return advertisement
    }
}

/// The `discovery` section of the configuration.
package struct DiscoveryOptions: Sendable {
    /// The service types to browse.
    package var types: [ServiceType]
    /// The network interfaces to accept services from.
    package var interfaces: InterfaceFilter

    /// - Parameters:
    ///   - types: Each type costs two of the 1,024 objects that avahi-daemon grants a client.
    ///   - allowed: Globs on interface names (`eth*`). Empty allows every interface.
    ///   - denied: Globs that take precedence over `allowed`. Container bridges carry advertisements of containers
    ///     whose addresses are unreachable from elsewhere.
    package init(
        types: [ServiceType] = ServiceType.standard,
        allowed: [String] = [],
        denied: [String] = ["docker*", "veth*"]
    ) {
        self.types = types
        interfaces = InterfaceFilter(allowed: allowed, denied: denied)
    }
}

/// An error of a Bonjour request.
package enum DiscoveryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Bonjour cannot carry this advertisement; `reason` names the invalid part.
    case notPublishable(name: String, reason: String)
    case noSuchAdvertisement(id: String)
    case tooManyAdvertisements(limit: Int)
    /// `run()` was called a second time. A source runs only once.
    case alreadyRun

    package var description: String {
        switch self {
        case .notPublishable(let name, let reason): "\"\(name)\" cannot be advertised: \(reason)"
        case .noSuchAdvertisement(let id): "there is no advertisement \"\(id)\""
        case .tooManyAdvertisements(let limit): "\(limit) services are advertised already, which is the limit"
        case .alreadyRun: "a Bonjour source can run only once; create a new one"
        }
    }

    /// The command to try next.
    package var hint: String? {
        switch self {
        case .notPublishable: "patchbay advertise --help"
        case .noSuchAdvertisement: "patchbay advertisements"
        case .tooManyAdvertisements: "patchbay advertisements rm ID"
        case .alreadyRun: nil
        }
    }
}
