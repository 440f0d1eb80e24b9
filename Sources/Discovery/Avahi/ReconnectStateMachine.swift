import SystemIO

/// Decides when to connect to Avahi and when to give up on a connection.
///
/// Has no I/O: events go in with their time, actions come out. After a failure it retries, at first soon and later every
/// 10 s.
struct ReconnectStateMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Phase: Hashable, Sendable {
        /// No connection. The next attempt is at `retry`.
        case disconnected(retry: Instant)
        /// D-Bus answers, avahi-daemon does not.
        case connecting(giveUp: Instant)
        /// avahi-daemon is running and registers its host name. Browsing works, publishing does not yet.
        case registering(since: Instant)
        case running(since: Instant)
    }

    enum Event: Hashable, Sendable {
        /// `AVAHI_CLIENT_CONNECTING`, or avahi_client_new returned and no callback has come yet.
        case connecting
        /// `AVAHI_CLIENT_S_REGISTERING` or `AVAHI_CLIENT_S_COLLISION`.
        case registering
        case running
        /// The connection failed, or the attempt to connect did.
        case failed
    }

    enum Action: Hashable, Sendable {
        case connect
        /// Free everything, then report `failed`.
        case giveUp
    }

    /// The first delay after a failure, doubled with each attempt up to `maxDelay`.
    static let firstDelay = Duration.milliseconds(50)
    static let maxDelay = Duration.seconds(10)
    /// The first time limit of CONNECTING. libavahi-client stays in that state forever if the daemon was stopped
    /// (SIGSTOP) during avahi_client_new.
    static let connectingLimit = Duration.seconds(10)
    /// The upper bound of the time limit, which doubles with each abandoned attempt.
    static let maxConnectingLimit = Duration.seconds(60)
    /// A connection that lasted this long resets the retry delay to `firstDelay`.
    static let stableAfter = Duration.seconds(10)

    private(set) var phase: Phase
    private var backoff = Backoff(from: Self.firstDelay, to: Self.maxDelay)
    private var abandonedAttempts = 0
    private let jitter: @Sendable () -> Double

    /// `jitter` returns a factor around 1 for every delay, so that many clients do not reconnect at the same moment.
    init(now: Instant, jitter: @escaping @Sendable () -> Double = { Double.random(in: 0.8...1.2) }) {
        phase = .disconnected(retry: now)
        self.jitter = jitter
    }

    /// True while browsers and resolvers can be created.
    var canBrowse: Bool {
        switch phase {
        case .registering, .running: true
        case .disconnected, .connecting: false
        }
    }

    var canPublish: Bool {
        if case .running = phase { true } else { false }
    }

    /// The time at which `tick` returns the next action.
    var deadline: Instant? {
        switch phase {
        case .disconnected(let retry): retry
        case .connecting(let giveUp): giveUp
        case .registering, .running: nil
        }
    }

    /// Returns the action that is due.
    mutating func tick(now: Instant) -> Action? {
        switch phase {
        case .disconnected(let retry) where now >= retry: return .connect
        case .connecting(let giveUp) where now >= giveUp:
            abandonedAttempts += 1
            return .giveUp
        default: return nil
        }
    }

    /// Records an event.
    mutating func handle(_ event: Event, now: Instant) {
        switch event {
        case .connecting:
            if case .connecting = phase { return }
            // A longer limit delays nothing: CONNECTING ends as soon as the daemon's name appears on the bus. Each
            // attempt makes D-Bus try to activate avahi-daemon, and D-Bus logs that.
            let limit = min(Self.connectingLimit * (1 << min(abandonedAttempts, 4)), Self.maxConnectingLimit)
            phase = .connecting(giveUp: now + limit)
        case .registering:
            phase = .registering(since: now)
            abandonedAttempts = 0
        case .running:
            phase = .running(since: now)
            abandonedAttempts = 0
        case .failed:
            if case .running(let since) = phase, now - since >= Self.stableAfter { backoff.reset() }
            phase = .disconnected(retry: now + backoff.next() * jitter())
        }
    }
}
