import AccessControl
import Model
import Synchronization
import SystemIO

/// The changes of apps for subscribers. Lists the tools of an app again after a change or a new launch.
///
/// `ChangeFollower` reads the apps' streams. Notifications are coalesced for at most a second. Lists are requested with a
/// rate limit that apps cannot influence.
final class ChangeMonitor: Sendable {
    private struct State {
        var notifications: [EndpointID: [ServerChange: ChangeThrottle]] = [:]
        var refreshes: [EndpointID: RefreshRateLimiter] = [:]
    }

    private let context: ProxyContext
    private let pool: UpstreamSessionPool
    private let catalog: ToolCatalog
    private let follower: ChangeFollower
    private let watch: ElapsedTimer
    private let state = Mutex(State())

    init(_ context: ProxyContext, of pool: UpstreamSessionPool, catalog: ToolCatalog) {
        self.context = context
        self.pool = pool
        self.catalog = catalog
        follower = ChangeFollower(context, of: pool)
        watch = ElapsedTimer(context.clock)
    }

    /// Handles what the sessions report, until the task is cancelled.
    func run() async {
        await context.upstreamSessionEvents.handleEach { event in
            switch event {
            case .change(let change, let id): handle(change, from: id)
            case .connection(let id): refreshIfDue(id)
            }
        }
    }

    // MARK: Changes

    /// Handles a change that the app announced.
    private func handle(_ change: ServerChange, from id: EndpointID) {
        // Clients that subscribed to the resource read it themselves.
        if case .resource = change { return context.changeNotifier.notify(id, change) }
        notify(change, of: id)
        if change == .tools { refreshTools(of: id, isAnnounced: true) }
    }

    /// Notifies subscribers of what has changed while an app's stream was not open, and of what may have changed if that
    /// is unknown.
    ///
    /// The lists of tools and prompts are read and compared, because a notification without a change is harmful:
    /// semantic-kernel waits for itself after each (`ChangeStreamHandler.streamSession`).
    private func notifyOfMissedChanges(of id: EndpointID) {
        guard let session = pool.session(of: id) else { return }
        for change in session.server?.announcedChanges ?? [] {
            switch change {
            case .tools: compareList(CachedApp.tools, of: id, change)
            case .prompts: compareList("prompts/list", of: id, change)
            case .resources, .resource: handle(change, from: id)
            }
        }
        for uri in session.subscriptions.uris { context.changeNotifier.notify(id, .resource(uri)) }
    }

    /// Reads a list; the catalog publishes a difference. A list that cannot be read or compared may have changed.
    ///
    /// `ChangeStreamState` limits the rate, because this follows the opening of a stream.
    private func compareList(_ method: String, of id: EndpointID, _ change: ServerChange) {
        context.tasks.scheduleRequest(of: id) { [self] in
            do { _ = try await catalog.freshList(method, of: id, for: .broker, wait: .zero) } catch {
                return notify(change, of: id)
            }
            // A list that is too large is not stored.
            if await catalog.cachedList(method, of: id) == nil { notify(change, of: id) }
        }
    }

    /// Publishes a change of a list now, or at the end of the interval since the last one.
    private func notify(_ change: ServerChange, of id: EndpointID) {
        guard pool.contains(id) else { return }
        let now = watch.elapsed
        let pause = state.withLock {
            $0.notifications[id, default: [:]][change, default: ChangeThrottle()].request(at: now)
        }
        switch pause {
        case nil: break
        case .zero?: context.changeNotifier.notify(id, change)
        case let pause?:
            context.tasks.schedule { [self] in
                guard (try? await context.clock.sleep(for: pause)) != nil else { return }
                let now = watch.elapsed
                state.withLock { $0.notifications[id]?[change]?.publish(at: now) }
                context.changeNotifier.notify(id, change)
            }
        }
    }

    // MARK: Lists

    /// Lists the tools of an app that has not been listed since its launch, if there are subscribers.
    func refreshIfDue(_ id: EndpointID) {
        guard pool.isListDue(of: id), context.changeNotifier.hasSubscribers(id) else { return }
        refreshTools(of: id, isAnnounced: false)
    }

    /// Forgets a deleted endpoint.
    func remove(_ id: EndpointID) {
        state.withLock { state in
            state.refreshes[id] = nil
            state.notifications[id] = nil
        }
    }

    private func refreshTools(of id: EndpointID, isAnnounced: Bool) {
        guard pool.contains(id) else { return }
        let now = watch.elapsed
        let pause = state.withLock { state in
            state.refreshes[id, default: RefreshRateLimiter()].request(isAnnounced: isAnnounced, at: now)
        }
        guard let pause, !context.tasks.schedule({ [self] in await listTools(of: id, after: pause) }) else { return }
        state.withLock { $0.refreshes[id]?.cancel() }
    }

    private func listTools(of id: EndpointID, after pause: Duration) async {
        if pause > .zero, (try? await context.clock.sleep(for: pause)) == nil { return }
        let now = watch.elapsed
        let isAnnounced = state.withLock { $0.refreshes[id]?.begin(at: now) ?? false }
        guard isAnnounced || pool.isListDue(of: id) else { return }
        await context.tasks.runRequest(of: id) { try await listTools(id, .broker) }
    }

    /// Lists an app's tools, so that the cache is current when the app goes offline.
    private func listTools(_ id: EndpointID, _ principal: Principal) async throws {
        _ = try await catalog.freshList(CachedApp.tools, of: id, for: principal, wait: .zero)
    }

    // MARK: Subscribers

    /// Streams the changes of an app that the principal may see.
    func changes(of id: EndpointID, for principal: Principal) -> AsyncStream<ServerChange> {
        let changes = context.changeNotifier.stream(of: id, bufferSize: 64) { [pool] id, change in
            pool.mayReceive(change, of: id, principal) ? change : nil
        }
        // The cached list may be from an earlier launch; the refresh notifies the subscriber of a difference.
        context.tasks.scheduleRequest(of: id) { [self] in try await listTools(id, principal) }
        follower.follow(id) { [self] in notifyOfMissedChanges(of: id) }
        return changes
    }

    /// Streams `.tools` for a change of any app that the principal may see.
    func changes(for principal: Principal) -> AsyncStream<ServerChange> {
        context.changeNotifier.stream(of: nil, bufferSize: 1) { [pool] id, change in
            guard change == .tools else { return nil }
            return principal.canSee(id, approvedApp: pool.approvedApp(of: id)) ? .tools : nil
        }
    }

    /// Handles the end of an app's launch, as soon as it is known. The app's stream is opened again, and subscribers
    /// are then told of everything that may have changed. Call this after `UpstreamSession.invalidate`.
    func endLaunch(of id: EndpointID) { follower.endLaunch(of: id) }
}

/// Coalesces notifications: the first is immediate, and later ones follow at the end of the interval. The last change is
/// never lost.
struct ChangeThrottle: Sendable {
    /// The shortest time between two notifications, in seconds.
    static let interval = Duration.seconds(1)

    private var last: Duration?
    private var isPending = false

    /// Requests a notification.
    ///
    /// - Returns: The delay before the notification, zero for now; nil if one is pending.
    mutating func request(at now: Duration) -> Duration? {
        guard !isPending else { return nil }
        let pause = last.map { max(.zero, $0 + Self.interval - now) } ?? .zero
        if pause > .zero { isPending = true } else { last = now }
        return pause
    }

    /// Records the publication of the pending notification.
    mutating func publish(at now: Duration) { (last, isPending) = (now, false) }
}

/// Rate limiter for list requests: the first is immediate, and each further one waits longer.
struct RefreshRateLimiter: Sendable {
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
