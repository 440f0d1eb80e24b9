import Model
import Synchronization
import SystemIO

/// Refreshes an app's lists after changes, with a rate limit that apps cannot influence.
extension AppProxy {
    /// Handles a change that the app announced.
    func handle(_ change: ServerChange, from id: EndpointID) {
        // Clients that subscribed to the resource read it themselves.
        if case .resource = change { return changeNotifier.notify(id, change) }
        refresh(id, change, isAnnounced: true)
    }

    /// Handles a new connection to an app, which may be another launch.
    func didConnect(to id: EndpointID) {
        entries.withLock { $0[id]?.isListDue = true }
        refreshIfDue(id)
    }

    /// Lists the tools of an app that has not been listed since its launch, if there are subscribers.
    func refreshIfDue(_ id: EndpointID) {
        guard entries.withLock({ $0[id]?.isListDue == true }), changeNotifier.hasSubscribers(id) else { return }
        refresh(id, .tools, isAnnounced: false)
    }

    private func refresh(_ id: EndpointID, _ change: ServerChange, isAnnounced: Bool) {
        let pause = entries.withLock { entries -> Duration? in
            guard entries[id] != nil else { return nil }
            return entries[id]?.refreshes[change, default: Refresh()]
                .request(isAnnounced: isAnnounced, at: watch.elapsed)
        }
        guard let pause, !schedule(.refresh(id, change, after: pause)) else { return }
        entries.withLock { $0[id]?.refreshes[change]?.cancel() }
    }

    /// Publishes or refreshes a change after the pause. The semaphore limits concurrent list requests.
    func perform(_ change: ServerChange, of id: EndpointID, after pause: Duration, _ semaphore: AsyncSemaphore) async {
        if pause > .zero, (try? await clock.sleep(for: pause)) == nil { return }
        let (isAnnounced, isDue) = entries.withLock { entries in
            let isAnnounced = entries[id]?.refreshes[change]?.begin(at: watch.elapsed) ?? false
            return (isAnnounced, isAnnounced || entries[id]?.isListDue == true)
        }
        if isAnnounced { changeNotifier.notify(id, change) }
        // Lists the tools again, so that the cache is current when the app goes offline.
        guard change == .tools, isDue, let permit = try? await semaphore.acquire() else { return }
        _ = try? await freshList(CachedApp.tools, of: id, for: .broker, wait: .zero)
        permit.release()
    }
}

/// Rate limiter for refreshes: the first is immediate, and each further one waits longer.
struct Refresh: Sendable {
    /// The shortest and the longest pause between two refreshes. After the current pause plus `longest` without a
    /// refresh, the pause starts again at `shortest`.
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(60)

    private var isPending = false
    private var isAnnounced = false
    private var last: Duration?
    private var pause = Duration.zero

    /// Requests a refresh; `isAnnounced` says that the app itself announced a change.
    ///
    /// - Returns: The delay before the refresh; nil if a refresh is already pending.
    mutating func request(isAnnounced: Bool, at now: Duration) -> Duration? {
        if isAnnounced { self.isAnnounced = true }
        guard !isPending else { return nil }
        isPending = true
        return last.map { max(.zero, $0 + pause - now) } ?? .zero
    }

    /// Begins the pending refresh.
    ///
    /// - Returns: Whether the app announced a change.
    mutating func begin(at now: Duration) -> Bool {
        let isCalm = last.map { now - $0 >= pause + Self.longest } ?? true
        pause = isCalm ? Self.shortest : min(Self.longest, pause * 2)
        last = now
        defer { (isPending, isAnnounced) = (false, false) }
        return isAnnounced
    }

    /// Cancels the pending refresh.
    mutating func cancel() { isPending = false }
}
