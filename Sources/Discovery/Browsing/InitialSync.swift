import Model

/// Decides when a fresh connection has said everything it sees.
///
/// Every browser says ALL_FOR_NOW once, about a second after it began, and what was found until then has to be resolved.
/// On networks of some 300 devices ALL_FOR_NOW may never come (avahi/avahi#264), hence the deadline.
struct InitialSync: Sendable {
    static let limit = Duration.seconds(3)

    let deadline: ContinuousClock.Instant
    private var waitingFor: Set<AvahiObjectKey>

    init(of browsers: some Sequence<AvahiObjectKey>, now: ContinuousClock.Instant) {
        waitingFor = Set(browsers)
        deadline = now + Self.limit
    }

    /// A browser said ALL_FOR_NOW, or failed and will say nothing more.
    mutating func heard(_ browser: AvahiObjectKey) { waitingFor.remove(browser) }

    /// Whether all is said, with so many services found and not yet tried.
    func isComplete(unresolved: Int, now: ContinuousClock.Instant) -> Bool {
        now >= deadline || (waitingFor.isEmpty && unresolved == 0)
    }
}

/// What we ourselves advertise, and under which host name: it is never listed as somebody else's.
///
/// Avahi marks what a client published when a browser first sees it. That mark is missing where somebody else had the
/// name before: Avahi then sees one and the same record go on.
struct PublishedServices: Hashable, Sendable {
    struct Service: Hashable, Sendable {
        let name: [UInt8]
        let type: String
    }

    /// Under their final names.
    var services: Set<Service> = []
    /// `this-machine.local`, in lower case.
    var host: String?

    func contains(_ key: ServiceKey, at details: ResolvedService) -> Bool {
        details.host.lowercased() == host && names(key)
    }

    func names(_ key: ServiceKey) -> Bool {
        services.contains(Service(name: key.name, type: key.type.lowercased()))
    }
}
