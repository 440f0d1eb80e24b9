/// Decides when to connect to Avahi, and when to give a connection up.
///
/// Without I/O: it is told what happened and when, and answers what to do. Short outages (a daemon that restarts) are over
/// within 2 s; a machine without Avahi costs one attempt in 10 s.
struct ReconnectStateMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Phase: Hashable, Sendable {
        /// Nothing is open; the next attempt is at `retry`.
        case disconnected(retry: Instant)
        /// The bus answers, avahi-daemon does not.
        case connecting(giveUp: Instant)
        /// avahi-daemon is there and settles its host name: browsing works, publishing does not yet.
        case registering(since: Instant)
        case running(since: Instant)
    }

    enum Event: Hashable, Sendable {
        /// `AVAHI_CLIENT_CONNECTING`, or avahi_client_new returned and said nothing yet.
        case connecting
        /// `AVAHI_CLIENT_S_REGISTERING` or `AVAHI_CLIENT_S_COLLISION`.
        case registering
        case running
        /// The connection cannot be used any more, or there never was one.
        case failed
    }

    enum Action: Hashable, Sendable {
        case connect
        /// Free everything, then `failed`.
        case giveUp
    }

    static let firstDelay = Duration.milliseconds(50)
    static let shortDelay = Duration.seconds(2)
    static let longDelay = Duration.seconds(10)
    /// After so many attempts in a row (about a minute) the long delay is used.
    static let patientAttempts = 30
    /// libavahi-client stays in CONNECTING for ever when the daemon was stopped (SIGSTOP) during avahi_client_new.
    static let connectingLimit = Duration.seconds(10)
    static let longestConnectingLimit = Duration.seconds(60)
    /// A connection that stood so long was a good one: the next failure begins with the first delay again.
    static let goodFor = Duration.seconds(10)

    private(set) var phase: Phase
    private var attempts = 0
    private var givenUp = 0
    private let jitter: @Sendable () -> Double

    /// `jitter` gives a factor around 1 for every delay, so that many clients do not come back in one moment.
    init(now: Instant, jitter: @escaping @Sendable () -> Double = { Double.random(in: 0.8...1.2) }) {
        phase = .disconnected(retry: now)
        self.jitter = jitter
    }

    /// True while browsers and resolvers can be made.
    var canBrowse: Bool {
        switch phase {
        case .registering, .running: true
        case .disconnected, .connecting: false
        }
    }

    var canPublish: Bool {
        if case .running = phase { true } else { false }
    }

    /// When `tick` has something to say.
    var deadline: Instant? {
        switch phase {
        case .disconnected(let retry): retry
        case .connecting(let giveUp): giveUp
        case .registering, .running: nil
        }
    }

    mutating func tick(now: Instant) -> Action? {
        switch phase {
        case .disconnected(let retry) where now >= retry: return .connect
        case .connecting(let giveUp) where now >= giveUp:
            givenUp += 1
            return .giveUp
        default: return nil
        }
    }

    mutating func handle(_ event: Event, now: Instant) {
        switch event {
        case .connecting:
            if case .connecting = phase { return }
            // The name's appearance on the bus ends CONNECTING at once, so growing patience delays nothing that works;
            // each attempt makes D-Bus try to activate avahi-daemon, which it notes in the journal.
            let limit = min(Self.connectingLimit * (1 << min(givenUp, 4)), Self.longestConnectingLimit)
            phase = .connecting(giveUp: now + limit)
        case .registering:
            phase = .registering(since: now)
            givenUp = 0
        case .running:
            phase = .running(since: now)
            givenUp = 0
        case .failed:
            if case .running(let since) = phase, now - since >= Self.goodFor { attempts = 0 }
            phase = .disconnected(retry: now + nextDelay())
        }
    }

    private mutating func nextDelay() -> Duration {
        defer { attempts += 1 }
        let delay =
            attempts >= Self.patientAttempts
            ? Self.longDelay : min(Self.firstDelay * (1 << min(attempts, 10)), Self.shortDelay)
        return delay * jitter()
    }
}
