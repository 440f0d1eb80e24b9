import AccessControl
import Model
import Synchronization
import SystemIO

/// Follows the changes of apps for subscribers, and lists the tools again after a change or a new launch.
///
/// Lists are requested with a rate limit that apps cannot influence.
final class ChangeMonitor: Sendable {
    private struct State {
        var refreshes: [EndpointID: [ServerChange: RefreshRateLimiter]] = [:]
        /// Apps whose changes a task follows.
        var followed: Set<EndpointID> = []
    }

    /// The pause before a change stream is opened again after an unexplained end, in seconds.
    private static let resubscribePause = Duration.seconds(5)

    private let pool: UpstreamSessionPool
    private let catalog: ToolCatalog
    private let tasks: BackgroundTasks
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    /// Notifies of changes of an endpoint's routes, state, approval or token.
    private let stateNotifier: EndpointNotifier<Void>
    /// Notifies of changes that apps announce and of changed lists.
    private let changeNotifier: EndpointNotifier<ServerChange>
    private let state = Mutex(State())

    init(
        of pool: UpstreamSessionPool,
        catalog: ToolCatalog,
        tasks: BackgroundTasks,
        clock: any Clock<Duration>,
        stateNotifier: EndpointNotifier<Void>,
        changeNotifier: EndpointNotifier<ServerChange>
    ) {
        self.pool = pool
        self.catalog = catalog
        self.tasks = tasks
        self.clock = clock
        self.stateNotifier = stateNotifier
        self.changeNotifier = changeNotifier
        watch = ElapsedTimer(clock)
    }

    // MARK: Refreshing

    /// Handles a change that the app announced.
    func handle(_ change: ServerChange, from id: EndpointID) {
        // Clients that subscribed to the resource read it themselves.
        if case .resource = change { return changeNotifier.notify(id, change) }
        refresh(id, change, isAnnounced: true)
    }

    /// Lists the tools of an app that has not been listed since its launch, if there are subscribers.
    func refreshIfDue(_ id: EndpointID) {
        guard pool.isListDue(of: id), changeNotifier.hasSubscribers(id) else { return }
        refresh(id, .tools, isAnnounced: false)
    }

    /// Forgets a deleted endpoint.
    func remove(_ id: EndpointID) { state.withLock { $0.refreshes[id] = nil } }

    private func refresh(_ id: EndpointID, _ change: ServerChange, isAnnounced: Bool) {
        guard pool.contains(id) else { return }
        let now = watch.elapsed
        let pause = state.withLock { state in
            state.refreshes[id, default: [:]][change, default: RefreshRateLimiter()].request(
                isAnnounced: isAnnounced,
                at: now
            )
        }
        guard let pause, !tasks.schedule({ [self] in await perform(change, of: id, after: pause) }) else { return }
        state.withLock { $0.refreshes[id]?[change]?.cancel() }
    }

    /// Publishes or refreshes a change after the pause.
    private func perform(_ change: ServerChange, of id: EndpointID, after pause: Duration) async {
        if pause > .zero, (try? await clock.sleep(for: pause)) == nil { return }
        let now = watch.elapsed
        let isAnnounced = state.withLock { $0.refreshes[id]?[change]?.begin(at: now) ?? false }
        let isDue = isAnnounced || pool.isListDue(of: id)
        if isAnnounced { changeNotifier.notify(id, change) }
        guard change == .tools, isDue else { return }
        await tasks.runRequest { try await listTools(id, .broker) }
    }

    /// Lists an app's tools, so that the cache is current when the app goes offline.
    private func listTools(_ id: EndpointID, _ principal: Principal) async throws {
        _ = try await catalog.freshList(CachedApp.tools, of: id, for: principal, wait: .zero)
    }

    // MARK: Following

    /// Streams the changes of an app.
    func changes(of id: EndpointID, for principal: Principal) -> AsyncStream<ServerChange> {
        let changes = changeNotifier.stream(of: id, bufferSize: 64) { _, change in change }
        // The cached list may be from an earlier launch; the refresh notifies the subscriber of a difference.
        tasks.scheduleRequest { [self] in try await listTools(id, principal) }
        follow(id, for: principal)
        return changes
    }

    /// Streams `.tools` for a change of any app that the principal may see.
    func changes(for principal: Principal) -> AsyncStream<ServerChange> {
        changeNotifier.stream(of: nil, bufferSize: 1) { [pool] id, change in
            guard change == .tools else { return nil }
            return principal.canSee(id, approvedApp: pool.approvedApp(of: id)) ? .tools : nil
        }
    }

    /// Follows an app's changes in the background while there are subscribers.
    private func follow(_ id: EndpointID, for principal: Principal) {
        tasks.schedule { [self] in await streamChangesWhileSubscribed(of: id, for: principal) }
    }

    /// Follows an app's change stream until the app has no subscribers of its own. One task per app.
    private func streamChangesWhileSubscribed(of id: EndpointID, for principal: Principal) async {
        guard (try? await pool.endpoint(id)) != nil, state.withLock({ $0.followed.insert(id).inserted }) else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.changeNotifier.waitUntilUnsubscribed(id) }
            group.addTask { await self.streamChangesRepeatedly(of: id, for: principal) }
            await group.next()
            group.cancelAll()
        }
        _ = state.withLock { $0.followed.remove(id) }
        // A new subscriber may have arrived after the last one left.
        if changeNotifier.hasSubscribers(only: id), !Task.isCancelled { follow(id, for: principal) }
    }

    private func streamChangesRepeatedly(of id: EndpointID, for principal: Principal) async {
        while !Task.isCancelled {
            // Created for each round, because a cancelled iteration ends its stream.
            let wakeups = stateNotifier.stream(of: id, bufferSize: 1) { _, _ in () }
            let hasStream = try? await streamChangesOnce(of: id, for: principal)
            let pause: Duration? = hasStream == true ? Self.resubscribePause : nil
            // An app without a change stream, or an offline app, is tried again after its next state change.
            guard let pause else {
                for await _ in wakeups { break }
                continue
            }
            _ = try? await withTimeout(pause, clock: clock) {
                for await _ in wakeups { break }
                return true
            }
        }
    }

    private func streamChangesOnce(of id: EndpointID, for principal: Principal) async throws -> Bool {
        try await pool.endpointTasks.run(at: id) { [pool] in
            let endpoint = try await pool.endpoint(id)
            let (session, access) = try await pool.authorize(principal, to: endpoint)
            return try await session.streamChanges(of: endpoint, by: access.routes)
        }
    }
}

/// Rate limiter for refreshes: the first is immediate, and each further one waits longer.
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
