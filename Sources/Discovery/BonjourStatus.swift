import Glibc
import Model
import Synchronization

/// How the Bonjour source is, readable at any moment.
///
/// Thread safety: behind a mutex that the Avahi thread never holds while it blocks in libavahi.
final class BonjourStatus: Sendable {
    enum Phase: Hashable, Sendable {
        case stopped
        case disconnected(reason: String)
        case connecting
        case registering
        case running

        /// How it is between a failure and the next attempt.
        init(after fault: AvahiError) {
            self =
                switch fault {
                case .absent: .connecting
                case .unreachable, .hung: .disconnected(reason: fault.description)
                }
        }
    }

    private struct State {
        var phase = Phase.stopped
        var counts = ServiceTable.Counts()
        var advertised = 0
        /// Types that Avahi does not browse, with its reason.
        var failedTypes: [ServiceType: String] = [:]
        var callBegan: ContinuousClock.Instant?
    }

    /// A call that takes longer than this is worth telling; a usual one takes 0.3 to 0.8 ms.
    static let patience = Duration.seconds(1)
    /// What helps when more services are there than a limit allows.
    static let floodRemedy = "find who advertises so many with `avahi-browse -a`, or narrow discovery.interfaces"
    static let daemonPath = "/usr/sbin/avahi-daemon"

    private let state = Mutex(State())
    private let isInstalled: @Sendable () -> Bool

    /// - Parameter isInstalled: Whether this machine has an avahi-daemon to start.
    init(isInstalled: @escaping @Sendable () -> Bool = { access(daemonPath, X_OK) == 0 }) {
        self.isInstalled = isInstalled
    }

    func report(
        _ phase: Phase,
        counts: ServiceTable.Counts = ServiceTable.Counts(),
        advertised: Int = 0,
        failedTypes: [ServiceType: String] = [:]
    ) {
        state.withLock { state in
            state.phase = phase
            state.counts = counts
            state.advertised = advertised
            state.failedTypes = failedTypes
        }
    }

    func callBegan() { state.withLock { $0.callBegan = .now } }

    /// - Returns: How long the call took.
    func callEnded() -> Duration {
        state.withLock { state in
            defer { state.callBegan = nil }
            return state.callBegan.map { $0.duration(to: .now) } ?? .zero
        }
    }

    /// How long the call has taken that the Avahi thread is in; zero when it is in none.
    var blockedFor: Duration { state.withLock { $0.callBegan?.duration(to: .now) ?? .zero } }

    var status: SourceStatus {
        let state = state.withLock { $0 }
        let blocked = state.callBegan?.duration(to: .now) ?? .zero
        if blocked > Self.patience {
            return SourceStatus(
                name: "bonjour",
                state: .starting,
                detail: "avahi-daemon has not answered for \(blocked.components.seconds) s",
                remedy: "sudo systemctl restart avahi-daemon"
            )
        }
        switch state.phase {
        case .stopped: return SourceStatus(name: "bonjour", state: .off, detail: "Bonjour is not running")
        case .disconnected(let reason):
            return missing("D-Bus, through which Avahi is reached, is not there: \(reason)", bus: "dbus ")
        case .connecting: return missing("avahi-daemon is not running", bus: "")
        case .registering:
            return SourceStatus(
                name: "bonjour",
                state: .starting,
                detail: "avahi-daemon settles its host name; " + sentence(state)
            )
        case .running:
            let remedy = state.counts.dropped > 0 ? Self.floodRemedy : nil
            return SourceStatus(name: "bonjour", state: .ok, detail: sentence(state), remedy: remedy)
        }
    }

    private func missing(_ detail: String, bus: String) -> SourceStatus {
        let remedy =
            isInstalled() ? "sudo systemctl start \(bus)avahi-daemon" : "sudo apt install \(bus)avahi-daemon"
        return SourceStatus(name: "bonjour", state: .missing, detail: detail, remedy: remedy)
    }

    private func sentence(_ state: State) -> String {
        let counts = state.counts
        var text = "\(counts.found) service\(counts.found == 1 ? "" : "s") found, \(counts.resolved) resolved"
        if counts.failed > 0 { text += ", \(counts.failed) failed" }
        if counts.refused > 0 { text += ", \(counts.refused) refused" }
        if counts.dropped > 0 { text += ", \(counts.dropped) dropped because there are too many" }
        if state.advertised > 0 { text += "; \(state.advertised) advertised" }
        // avahi-daemon's default cache holds the records of some 800 services and drops what goes beyond without a word.
        if counts.found > 700 { text += "; raise cache-entries-max in avahi-daemon.conf, more may be there unseen" }
        for (type, reason) in state.failedTypes.sorted(by: { $0.key < $1.key }) {
            text += "; \(type) is not browsed: \(reason)"
        }
        return text
    }
}
