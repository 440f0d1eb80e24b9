import Model

/// The life cycle of one advertisement: publish, rename on a collision, update the TXT record.
///
/// Has no I/O: `nextAction` returns the next call, and its result comes back through the other methods.
struct AdvertisementStateMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Phase: Hashable, Sendable {
        /// Nothing is published.
        case waiting
        case registering
        case published
        case failed(reason: String)
    }

    enum Action: Hashable, Sendable {
        case publish
        case updateTXT
    }

    /// The number of names tried after collisions before the advertisement fails.
    static let renameLimit = 20
    /// The minimum time between two TXT updates.
    ///
    /// An update right after a commit gives a false conflict (avahi/avahi#654). mDNS allows at most one announcement of
    /// a record per second (RFC 6762, section 8.3).
    static let txtUpdateInterval = Duration.seconds(1)

    private(set) var phase = Phase.waiting
    /// The name to publish: the requested name, or another one after collisions. Kept when the daemon restarts.
    private(set) var name: String
    /// The requested advertisement.
    private(set) var wanted: AdvertisementSpec
    /// The TXT record that the daemon has.
    private var publishedTXT: TXTRecord?
    private var lastChange: Instant?
    private var renames = 0
    /// True once the name was published. After an outage it is then published again without a search for other holders.
    private(set) var wasPublished = false
    private let alternative: @Sendable (String) -> String

    /// `alternative` returns the name to try after a collision.
    init(_ spec: AdvertisementSpec, alternative: @escaping @Sendable (String) -> String) {
        wanted = spec
        name = spec.name
        self.alternative = alternative
    }

    /// True if the daemon has the current TXT record, or the advertisement failed.
    var isStable: Bool {
        switch phase {
        case .published: publishedTXT == wanted.txt
        case .failed: true
        case .waiting, .registering: false
        }
    }

    /// The time at which `nextAction` may return an action.
    var deadline: Instant? {
        guard phase == .published, publishedTXT != wanted.txt, let lastChange else { return nil }
        return lastChange + Self.txtUpdateInterval
    }

    /// Replaces the requested TXT record.
    mutating func setTXT(_ txt: TXTRecord) {
        wanted.txt = txt
    }

    /// The next action. Call it only while the daemon can publish.
    func nextAction(now: Instant) -> Action? {
        switch phase {
        case .waiting: .publish
        case .published:
            if publishedTXT != wanted.txt, now >= (lastChange ?? now) + Self.txtUpdateInterval {
                .updateTXT
            } else {
                nil
            }
        case .registering, .failed: nil
        }
    }

    /// Records that the group was committed. The daemon now probes the name on the network.
    mutating func committed(now: Instant) {
        phase = .registering
        publishedTXT = wanted.txt
        lastChange = now
    }

    /// Records that the name is established on the network.
    mutating func established() {
        guard phase == .registering else { return }
        phase = .published
        wasPublished = true
        renames = 0
    }

    /// Records that the daemon has the requested TXT record.
    mutating func txtUpdated(now: Instant) {
        publishedTXT = wanted.txt
        lastChange = now
    }

    /// Handles a name collision with a service of this machine (return code of the call) or of the network (callback).
    mutating func collided() {
        publishedTXT = nil
        renames += 1
        guard renames <= Self.renameLimit else {
            phase = .failed(reason: "the name and \(Self.renameLimit) variants of it are taken; choose another name")
            return
        }
        name = alternative(name)
        phase = .waiting
    }

    /// Records a permanent failure.
    mutating func failed(_ reason: String) {
        phase = .failed(reason: reason)
        publishedTXT = nil
    }

    /// Records that nothing is published, because the daemon stopped or registers a new host name. The advertisement
    /// will be published again.
    mutating func withdrawn() {
        if case .failed = phase { renames = 0 }
        phase = .waiting
        publishedTXT = nil
    }
}
