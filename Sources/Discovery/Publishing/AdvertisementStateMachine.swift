import Model

/// The way of one advertisement: publish, rename on a collision, follow the TXT record that is wanted.
///
/// Without I/O: `step` says which call to make next, its outcome comes back as one of the other methods.
struct AdvertisementStateMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Phase: Hashable, Sendable {
        /// The daemon holds nothing of it.
        case waiting
        case registering
        case published
        case failed(reason: String)
    }

    enum Step: Hashable, Sendable {
        case publish
        case updateText
    }

    static let renameLimit = 20
    /// A TXT update right after a commit gives a false conflict (avahi/avahi#654), and mDNS lets a record be announced once a
    /// second at most (RFC 6762, section 8.3).
    static let textPause = Duration.seconds(1)

    private(set) var phase = Phase.waiting
    /// The name to publish under: as asked for, or after collisions. Kept over a daemon's restart.
    private(set) var name: String
    private(set) var wanted: AdvertisementSpec
    /// The TXT record that the daemon has.
    private var given: TXTRecord?
    private var lastChange: Instant?
    private var renames = 0
    /// Once a name was ours it is asked for again after an outage without looking whether somebody has it.
    private(set) var wasPublished = false
    private let alternative: @Sendable (String) -> String

    /// `alternative` gives the name to try after a collision with another.
    init(_ spec: AdvertisementSpec, alternative: @escaping @Sendable (String) -> String) {
        wanted = spec
        name = spec.name
        self.alternative = alternative
    }

    /// What is to be published: what is wanted, under the name it got.
    var spec: AdvertisementSpec { wanted }

    /// True when the daemon has the TXT record that is wanted, or never will.
    var isSettled: Bool {
        switch phase {
        case .published: given == wanted.txt
        case .failed: true
        case .waiting, .registering: false
        }
    }

    /// When `step` may have something to say that it has not now.
    var deadline: Instant? {
        guard phase == .published, given != wanted.txt, let lastChange else { return nil }
        return lastChange + Self.textPause
    }

    mutating func want(_ txt: TXTRecord) {
        wanted = AdvertisementSpec(name: wanted.name, type: wanted.type, port: wanted.port, txt: txt)
    }

    /// What to do now, while the daemon is ready to publish.
    func step(now: Instant) -> Step? {
        switch phase {
        case .waiting: .publish
        case .published:
            if given != wanted.txt, now >= (lastChange ?? now) + Self.textPause { .updateText } else { nil }
        case .registering, .failed: nil
        }
    }

    /// The group is committed; the daemon asks the network now.
    mutating func committed(now: Instant) {
        phase = .registering
        given = wanted.txt
        lastChange = now
    }

    mutating func established() {
        guard phase == .registering else { return }
        phase = .published
        wasPublished = true
        renames = 0
    }

    mutating func textUpdated(now: Instant) {
        given = wanted.txt
        lastChange = now
    }

    /// The name is taken: by another service of this machine (the return code of the call), or of the network (the callback).
    mutating func collided() {
        given = nil
        renames += 1
        guard renames <= Self.renameLimit else {
            phase = .failed(reason: "the name and \(Self.renameLimit) others made of it are taken; choose another name")
            return
        }
        name = alternative(name)
        phase = .waiting
    }

    mutating func failed(_ reason: String) {
        phase = .failed(reason: reason)
        given = nil
    }

    /// The daemon went away or settles its host name anew: nothing is published now, and everything will be again.
    mutating func withdrawn() {
        if case .failed = phase { renames = 0 }
        phase = .waiting
        given = nil
    }
}
