/// The time limits of lookups, and the delays between them.
///
/// Above `crowdThreshold` failing services, lookups get shorter time limits and retries longer delays. Each unanswered
/// lookup costs avahi-daemon queries and timers.
struct LookupTiming: Sendable {
    /// The number of failing services above which there is a crowd.
    static let crowdThreshold = 64
    /// The interval between lookups of a service without an open resolver.
    static let refreshInterval = Duration.seconds(60)
    /// The delay before a service is looked up again after a change: 1.5 s.
    ///
    /// Avahi keeps a record that is less than one second old beside its replacement (RFC 6762, section 10.2). Its
    /// resolvers then do not report the new record.
    static let secondLookupDelay = Duration.milliseconds(1_500)
    /// The delay before the next lookup after the first, second, … consecutive failure. The last value repeats.
    private static let retryDelays: [Duration] = [.seconds(1), .seconds(5), .seconds(15), .seconds(60)]

    /// The number of services whose last lookup failed.
    let failed: Int

    var isCrowded: Bool { failed > Self.crowdThreshold }

    /// The time that a lookup may occupy a place in the window.
    ///
    /// Without a crowd it is 500 ms. A lookup usually takes 20 to 120 ms; Avahi's own limit is 5 s.
    ///
    /// In a crowd a repeated lookup has 250 ms, and a first lookup has 60 ms. A service that was just announced is in
    /// Avahi's cache and resolves at once. Avahi sends a query only 100 ms after the request (AVAHI_QUERY_DEFER_MSEC in
    /// avahi-core/query-sched.c). A lookup that ends earlier therefore sends no query.
    func timeout(isFirst: Bool) -> Duration {
        guard isCrowded else { return .milliseconds(500) }
        return isFirst ? .milliseconds(60) : .milliseconds(250)
    }

    /// The delay before the next lookup after a failure, if `earlierFailures` consecutive lookups failed before.
    func retryDelay(earlierFailures: Int) -> Duration {
        let delay = Self.retryDelays[min(earlierFailures, Self.retryDelays.count - 1)]
        // The first two retries come soon in any case, because a packet may have been lost.
        return earlierFailures > 1 ? delay * max(1, failed / Self.crowdThreshold) : delay
    }
}
