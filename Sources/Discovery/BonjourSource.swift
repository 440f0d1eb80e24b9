package import Logging
package import Model
import ServiceLifecycle
import Synchronization

/// Bonjour in and out, through Avahi: what is advertised on the network becomes sightings, and what somebody asks for is
/// advertised.
///
/// Avahi and D-Bus may be absent, die and come back: the source says so in its status and its events and goes on.
package final class BonjourSource: Service {
    /// What is seen, for a single follower; ends after `run()`.
    ///
    /// A slow follower loses nothing: events that wait are coalesced per sighting, the last state wins. After the first
    /// look round and after every loss of Avahi, `sourceReconciled` says that everything has been said.
    package let events: AsyncStream<SightingEvent>

    /// How long a caller waits for Avahi to publish, update or withdraw: registering takes 0.8 s, each rename as much again.
    static let publishingLimit = Duration.seconds(5)

    private let options: DiscoveryOptions
    private let timing: AvahiEngine.Timing
    private let logger: Logger
    private let clock: any Clock<Duration>
    private let feed = SightingQueue()
    private let board = AdvertisementStore()
    private let health = BonjourStatus()
    private let silent = SilentRoutes()
    private let loop = AvahiThreadExecutor()
    private let hasRun = Atomic(false)

    package convenience init(options: DiscoveryOptions, logger: Logger) {
        self.init(options: options, timing: AvahiEngine.Timing(), clock: ContinuousClock(), logger: logger)
    }

    init(options: DiscoveryOptions, timing: AvahiEngine.Timing, clock: any Clock<Duration>, logger: Logger) {
        self.options = options
        self.timing = timing
        self.clock = clock
        self.logger = logger
        events = feed.events
    }

    /// Browses and publishes until graceful shutdown or cancellation.
    ///
    /// On return the adverts are withdrawn with a goodbye, everything of libavahi is freed and its thread has ended. Only a
    /// thread that hangs in a call at that moment is left to itself: it does the same as soon as the call returns.
    /// - Throws: `DiscoveryError.alreadyRun`.
    package func run() async throws {
        guard hasRun.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            throw DiscoveryError.alreadyRun
        }
        let engine = AvahiEngine(
            loop: loop,
            options: options,
            timing: timing,
            feed: feed,
            board: board,
            health: health,
            silent: silent,
            logger: logger
        )
        board.serve(true)
        loop.start { poll, isLast in engine.assumeIsolated { $0.turn(on: poll, isLast: isLast) } }
        // Throws when cancelled, which asks for the same as a graceful shutdown.
        try? await gracefulShutdown()
        loop.stop()
        if health.blockedFor < BonjourStatus.patience { await loop.ended() }
        board.serve(false)
        health.report(.stopped)
        feed.finish()
    }

    /// How it is; answers at once even while libavahi blocks.
    package func status() async -> SourceStatus { health.status }

    /// Asks Avahi again for the services at these routes, because nothing answers there: their port may have changed.
    ///
    /// Avahi tells of a change that came less than a second after the advert to those who ask again, and to no other.
    package func lookAgain(at routes: [Route]) {
        silent.add(routes)
        loop.nudge()
    }

    /// Publishes a service for as long as the source runs or until `withdraw`.
    ///
    /// Returns when it is published, perhaps under another name, when it is known to have failed or to be waiting for
    /// Avahi, and after 5 s at the latest; `state` says which.
    /// - Throws: `DiscoveryError`.
    package func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        let id = try board.add(spec)
        return try await settled(id)
    }

    /// All that stand, in the order in which they were asked for.
    package func advertisements() async -> [Advertisement] { board.advertisements }

    /// Tells each time that an advertisement may have changed its state or name, or is gone.
    package func advertisementChanges() -> AsyncStream<Void> { board.changes() }

    /// Replaces the TXT record. Updates within a second are sent as one.
    /// - Throws: `DiscoveryError`; the old record stands then.
    package func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        try board.update(id, txt: txt)
        return try await settled(id)
    }

    /// Takes an advertisement back; on return its goodbye is on its way.
    /// - Throws: `DiscoveryError.noSuchAdvertisement`.
    package func withdraw(_ id: String) async throws {
        try board.remove(id)
        loop.nudge()
        _ = await board.settled(id, within: Self.publishingLimit, clock: clock)
    }

    private func settled(_ id: String) async throws -> Advertisement {
        loop.nudge()
        guard let advertisement = await board.settled(id, within: Self.publishingLimit, clock: clock) else {
            throw DiscoveryError.noSuchAdvertisement(id: id)
        }
        return advertisement
    }
}

/// What Bonjour is asked for, as the configuration says it.
package struct DiscoveryOptions: Sendable {
    /// Which service types are browsed.
    package var types: [ServiceType]
    /// On which network interfaces services count.
    package var interfaces: InterfaceFilter

    /// - Parameters:
    ///   - types: Each costs two browsers of the 1,024 objects that avahi-daemon grants a client.
    ///   - allowed: Globs on interface names (`eth*`); empty allows every interface.
    ///   - denied: Globs that win over `allowed`. Container bridges carry the containers' adverts, whose addresses lead
    ///     nowhere from elsewhere.
    package init(
        types: [ServiceType] = ServiceType.standard,
        allowed: [String] = [],
        denied: [String] = ["docker*", "veth*"]
    ) {
        self.types = types
        interfaces = InterfaceFilter(allowed: allowed, denied: denied)
    }
}

/// Why Bonjour did not do what it was asked.
package enum DiscoveryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The advertisement is not one that Bonjour can carry; `reason` says which part of it.
    case notPublishable(name: String, reason: String)
    case noSuchAdvertisement(id: String)
    case tooManyAdvertisements(limit: Int)
    /// `run()` was called a second time; a source runs once.
    case alreadyRun

    package var description: String {
        switch self {
        case .notPublishable(let name, let reason): "\"\(name)\" cannot be advertised: \(reason)"
        case .noSuchAdvertisement(let id): "there is no advertisement \"\(id)\""
        case .tooManyAdvertisements(let limit): "\(limit) services are advertised already, which is the limit"
        case .alreadyRun: "this Bonjour source has run already; make another one"
        }
    }

    /// The next thing to try.
    package var next: String? {
        switch self {
        case .notPublishable: "patchbay advertise --help"
        case .noSuchAdvertisement: "patchbay advertisements"
        case .tooManyAdvertisements: "patchbay advertisements rm ID"
        case .alreadyRun: nil
        }
    }
}
