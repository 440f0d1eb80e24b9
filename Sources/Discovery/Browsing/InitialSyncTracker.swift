import Model

/// Decides when a new connection has reported all services that exist at its start.
///
/// Every browser sends ALL_FOR_NOW once, about one second after its start. All services found until then must also be
/// resolved. On networks with about 300 devices ALL_FOR_NOW may never arrive (avahi/avahi#264), so there is a deadline
/// of 3 s.
struct InitialSyncTracker: Sendable {
    /// The maximum duration of the initial sync: 3 s.
    static let limit = Duration.seconds(3)

    let deadline: ContinuousClock.Instant
    private var waitingFor: Set<AvahiObjectKey>

    init(of browsers: some Sequence<AvahiObjectKey>, now: ContinuousClock.Instant) {
        waitingFor = Set(browsers)
        deadline = now + Self.limit
    }

    /// Records that a browser sent ALL_FOR_NOW, or failed and will send nothing more.
    mutating func browserFinished(_ browser: AvahiObjectKey) { waitingFor.remove(browser) }

    /// Returns true if all browsers have finished and `unresolved`, the number of services not yet looked up, is 0.
    ///
    /// Also returns true after the deadline.
    func isComplete(unresolved: Int, now: ContinuousClock.Instant) -> Bool {
        now >= deadline || (waitingFor.isEmpty && unresolved == 0)
    }
}

/// Patchbay's own advertisements and the mDNS name of this machine. They are not listed as discovered services.
///
/// Avahi marks a client's own services when a browser first sees them. The mark is missing if another machine had the same
/// name before, because Avahi then sees one continuing record.
struct OwnAdvertisements: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        let name: [UInt8]
        let type: String
    }

    /// The services under their final names.
    var services: Set<Service> = []
    /// The name in lower case, such as `this-machine.local`.
    var machine: String?

    /// Returns true for a service of Patchbay on this machine.
    func contains(_ key: ServiceKey, at details: ResolvedService) -> Bool {
        details.machine.lowercased() == machine && matches(key)
    }

    /// Returns true if Patchbay publishes a service with this name and type.
    func matches(_ key: ServiceKey) -> Bool {
        services.contains(Service(name: key.name, type: key.type.lowercased()))
    }
}
