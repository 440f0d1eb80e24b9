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
