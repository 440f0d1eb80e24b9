import Model
import Synchronization
import SystemIO

/// Looking again at what has changed about an app, at a rate that no app decides.
extension AppProxy {
    /// The app says that something has changed.
    func heed(_ change: ServerChange, from id: EndpointID) {
        // A resource that changes is asked for by the clients that want it, and not from here.
        if case .resource = change { return news.ring(id, change) }
        refresh(id, change, isAnnounced: true)
    }

    /// The app was met at another launch.
    func noteMeeting(with id: EndpointID) {
        entries.withLock { $0[id]?.isListDue = true }
        refreshIfDue(id)
    }

    /// Lists the tools of an app that has not been listed since its launch, where somebody wants to hear of them.
    func refreshIfDue(_ id: EndpointID) {
        guard entries.withLock({ $0[id]?.isListDue == true }), news.isHeard(id) else { return }
        refresh(id, .tools, isAnnounced: false)
    }

    private func refresh(_ id: EndpointID, _ change: ServerChange, isAnnounced: Bool) {
        let pause = entries.withLock { entries -> Duration? in
            guard entries[id] != nil else { return nil }
            return entries[id]?.refreshes[change, default: Refresh()]
                .request(isAnnounced: isAnnounced, at: watch.elapsed)
        }
        guard let pause, !send(.refresh(id, change, after: pause)) else { return }
        entries.withLock { $0[id]?.refreshes[change]?.giveUp() }
    }

    /// Looks at it when the pause is over; lists are asked for through the gate.
    func perform(_ change: ServerChange, of id: EndpointID, after pause: Duration, _ gate: AsyncSemaphore) async {
        if pause > .zero, (try? await clock.sleep(for: pause)) == nil { return }
        let (isAnnounced, isDue) = entries.withLock { entries in
            let isAnnounced = entries[id]?.refreshes[change]?.begin(at: watch.elapsed) ?? false
            return (isAnnounced, isAnnounced || entries[id]?.isListDue == true)
        }
        if isAnnounced { news.ring(id, change) }
        // What is listed is asked for anew, so that the shelf is right when the app is away.
        guard change == .tools, isDue, let permit = try? await gate.enter() else { return }
        _ = try? await freshList(CachedApp.tools, of: id, for: .broker, wait: .zero)
        permit.giveBack()
    }
}

/// When it is looked at again what an app says has changed: at once, and the more seldom the more often it says so.
struct Refresh: Sendable {
    /// Between two looks: at first, and at most. An app that was quiet for that long is looked at at once again.
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(60)

    private var isPending = false
    private var isAnnounced = false
    private var last: Duration?
    private var pause = Duration.zero

    /// It is to be looked at; `isAnnounced` where the app itself says that something has changed.
    ///
    /// - Returns: In how long it is to be looked at; nil where that is pending already.
    mutating func request(isAnnounced: Bool, at now: Duration) -> Duration? {
        if isAnnounced { self.isAnnounced = true }
        guard !isPending else { return nil }
        isPending = true
        return last.map { max(.zero, $0 + pause - now) } ?? .zero
    }

    /// It is looked at now.
    ///
    /// - Returns: Whether the app has said that something has changed.
    mutating func begin(at now: Duration) -> Bool {
        let isCalm = last.map { now - $0 >= pause + Self.longest } ?? true
        pause = isCalm ? Self.shortest : min(Self.longest, pause * 2)
        last = now
        defer { (isPending, isAnnounced) = (false, false) }
        return isAnnounced
    }

    /// It is not looked at after all.
    mutating func giveUp() { isPending = false }
}
