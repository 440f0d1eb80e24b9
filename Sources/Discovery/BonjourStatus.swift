import Glibc
import Model
import Synchronization

/// The status of the Bonjour source, readable at any time.
///
/// Thread safety: protected by a mutex that the Avahi thread never holds while blocked in libavahi.
final class BonjourStatus: Sendable {
    enum Phase: Hashable, Sendable {
        case stopped
        case disconnected(reason: String)
        case connecting
        case registering
        case running

        /// The phase between a failure and the next connection attempt.
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
        var counts = ServiceCounter.Counts()
        var advertised = 0
        /// Types that Avahi does not browse, with the reason.
        var failedTypes: [ServiceType: String] = [:]
        var callBegan: ContinuousClock.Instant?
    }

    /// A call that takes longer than this (1 s) is reported in the status. A call usually takes 0.3 to 0.8 ms.
    static let slowCallThreshold = Duration.seconds(1)
    /// The advice shown when a limit drops services.
    static let floodHint = "find the source with `avahi-browse -a`, or narrow discovery.interfaces"
    static let daemonPath = "/usr/sbin/avahi-daemon"

    private let state = Mutex(State())
    private let isInstalled: @Sendable () -> Bool

    /// - Parameter isInstalled: Returns true if avahi-daemon is installed on this machine.
    init(isInstalled: @escaping @Sendable () -> Bool = { access(daemonPath, X_OK) == 0 }) {
        self.isInstalled = isInstalled
    }

    /// Replaces the reported state.
    func report(
        _ phase: Phase,
        counts: ServiceCounter.Counts = ServiceCounter.Counts(),
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

    /// Records the start of a blocking call.
    func callBegan() { state.withLock { $0.callBegan = .now } }

    /// - Returns: The duration of the call.
    func callEnded() -> Duration {
        state.withLock { state in
            defer { state.callBegan = nil }
            return state.callBegan.map { $0.duration(to: .now) } ?? .zero
        }
    }

    /// The duration of the Avahi thread's current call; zero if there is none.
    var blockedFor: Duration { state.withLock { $0.callBegan?.duration(to: .now) ?? .zero } }

    var status: SourceStatus {
        let state = state.withLock { $0 }
        let blocked = state.callBegan?.duration(to: .now) ?? .zero
        if blocked > Self.slowCallThreshold {
            return SourceStatus(
                name: "bonjour",
                state: .starting,
                detail: "avahi-daemon has not answered for \(blocked.components.seconds) s",
                hint: "sudo systemctl restart avahi-daemon"
            )
        }
        switch state.phase {
        case .stopped: return SourceStatus(name: "bonjour", state: .off, detail: "Bonjour is not running")
        case .disconnected(let reason):
            return missing("D-Bus, which Avahi needs, is not available: \(reason)", bus: "dbus ")
        case .connecting: return missing("avahi-daemon is not running", bus: "")
        case .registering:
            return SourceStatus(
                name: "bonjour",
                state: .starting,
                detail: "avahi-daemon is registering its host name; " + summary(state)
            )
        case .running:
            let hint = state.counts.dropped > 0 ? Self.floodHint : nil
            return SourceStatus(name: "bonjour", state: .ok, detail: summary(state), hint: hint)
        }
    }

    private func missing(_ detail: String, bus: String) -> SourceStatus {
        let hint =
            isInstalled() ? "sudo systemctl start \(bus)avahi-daemon" : "sudo apt install \(bus)avahi-daemon"
        return SourceStatus(name: "bonjour", state: .missing, detail: detail, hint: hint)
    }

    private func summary(_ state: State) -> String {
        let counts = state.counts
        var text = "\(counts.found) service\(counts.found == 1 ? "" : "s") found, \(counts.resolved) resolved"
        if counts.failed > 0 { text += ", \(counts.failed) failed" }
        if counts.refused > 0 { text += ", \(counts.refused) refused" }
        if counts.dropped > 0 { text += ", \(counts.dropped) dropped because there are too many" }
        if state.advertised > 0 { text += "; \(state.advertised) advertised" }
        // avahi-daemon's default cache holds the records of about 800 services and silently drops the rest.
        if counts.found > 700 {
            text += "; Avahi may not list all of them: raise cache-entries-max in avahi-daemon.conf"
        }
        for (type, reason) in state.failedTypes.sorted(by: { $0.key < $1.key }) {
            text += "; \(type) is not browsed: \(reason)"
        }
        return text
    }
}
