package import Model
import ServiceLifecycle
import Synchronization
package import SystemIO

/// Watches the launches of servers, so that the end of a launch is known at once.
///
/// A watch is an idle connection to the server's port. It ends in the moment in which the process ends, also through
/// usbmuxd. The observation of a watch is evidence that a secret still belongs to the launch that accepted it.
package final class LaunchWatcher: Service {
    /// The maximum time for the first connection of a watch, and for the answer of its server.
    static let timeout = Duration.seconds(1)
    /// The pauses between two attempts to watch a port.
    static let shortestPause = Duration.seconds(1)
    static let longestPause = Duration.seconds(15)
    /// The interval at which a server that serves one connection at a time is dialled.
    static let pollInterval = Duration.seconds(1)
    /// The longest wait for the end of a watch, after which the wait begins again.
    static let longestWait = Duration.seconds(86_400)
    /// The time for which a port is watched on demand.
    static let demandPeriod = Duration.seconds(30)
    /// A server that ended this many watches within a second each keeps no idle connections, so it is polled.
    static let shortWatchLimit = 3

    private let launches: ObservedLaunches
    private let dialer: any Dialer
    private let detector: ServiceDetector
    private let timer: ElapsedTimer
    private let clock: any Clock<Duration>
    private let state = Mutex(WatchedPorts())
    /// The ports to work on.
    private let ports = AsyncStream.makeStream(of: RoutePort.self)
    /// The routes to servers whose launch has ended, for a single consumer.
    package let endings: AsyncStream<Route>
    private let endingsContinuation: AsyncStream<Route>.Continuation

    /// - Parameters:
    ///   - launches: Receives the observations.
    ///   - dialer: Opens the connections. They do not count as use of the port.
    ///   - clock: The clock of pauses and time limits.
    package init(
        launches: ObservedLaunches,
        dialer: any Dialer,
        clock: any Clock<Duration> = PollerClock()
    ) {
        self.launches = launches
        self.dialer = dialer
        self.clock = clock
        timer = ElapsedTimer(clock)
        detector = ServiceDetector(dialer: dialer, timeout: Self.timeout, clock: clock)
        (endings, endingsContinuation) = AsyncStream.makeStream(of: Route.self)
        launches.setObserver { [weak self] in await self?.observe($0) }
    }

    /// Sets the routes that an endpoint needs watched.
    package func set(_ routes: Set<Route>, of id: EndpointID) {
        let now = timer.elapsed
        let (added, pauses, removed) = state.withLock { $0.set(routes, of: id, at: now) }
        for watch in removed { watch.stop() }
        for pause in pauses { pause.complete(.success(())) }
        for port in added { ports.continuation.yield(port) }
    }

    /// Watches until graceful shutdown or cancellation.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                for await port in ports.stream { group.addTask { await self.watch(port) } }
                group.cancelAll()
            }
        }
        endingsContinuation.finish()
    }

    /// Begins to watch a port now, for `demandPeriod`.
    ///
    /// - Returns: Its observation; nil if no server can be watched there.
    private func observe(_ route: Route) async -> LaunchObservation? {
        let port = RoutePort(route)
        let end = timer.elapsed + Self.demandPeriod
        let isNew = state.withLock { $0.start(route, until: end) } != nil
        let observation = await begin(port)
        if isNew { ports.continuation.yield(port) }
        // The task of the port may pause after a failed attempt. It must hold the new watch.
        state.withLock { $0[port]?.retry }?.complete(.success(()))
        return observation
    }

    /// Watches a port while an endpoint or a caller needs it.
    private func watch(_ port: RoutePort) async {
        var backoff = Backoff(from: Self.shortestPause, to: Self.longestPause)
        while !Task.isCancelled, state.withLock({ $0.keep(port, at: timer.elapsed) }) {
            if let observation = await begin(port) {
                backoff.reset()
                await hold(port, observation)
            } else {
                // The server has ended, so it did not close the last watch for being idle.
                state.withLock { $0.update(port) { $0.shortWatches = 0 } }
                await pause(for: backoff.next(), port)
            }
        }
    }

    /// Waits before the next attempt, or until an endpoint at the port has changed.
    private func pause(for limit: Duration, _ port: RoutePort) async {
        let retry = Promise<Void>()
        state.withLock { $0.update(port) { $0.retry = retry } }
        _ = try? await withTimeout(limit, clock: clock) { try await retry.value() }
        state.withLock { $0.update(port) { $0.retry = nil } }
    }

    // MARK: One watch

    /// Returns the observation of a port. Begins one if there is none.
    private func begin(_ port: RoutePort) async -> LaunchObservation? {
        let latch = AsyncLatch()
        let (current, other) = state.withLock { state in
            let (current, other) = (state[port], state[port]?.attempt)
            if other == nil { state.update(port) { $0.attempt = latch } }
            return (current, other)
        }
        guard let route = current?.route else { return nil }
        if let other {
            await other.wait()
            return launches[route]
        }
        defer {
            state.withLock { $0.update(port) { $0.attempt = nil } }
            latch.open()
        }
        if let observation = launches[route] { return observation }
        return await open(route, port)
    }

    /// Opens the first connection of a watch, and checks that the server serves others beside it.
    private func open(_ route: Route, _ port: RoutePort) async -> LaunchObservation? {
        let opened = try? await withTimeout(Self.timeout, clock: clock) { [dialer] in
            LaunchWatch(route, dialer: dialer, first: try await dialer.dial(route))
        }
        guard let watch = opened ?? nil else { return nil }
        let answer = await detector.launch(behind: route)
        guard await watch.isUnbroken() else { return nil }
        let isPolled = state.withLock { state in
            state.update(port) {
                if answer == .silent { $0.isPolled = true }
                $0.watch = $0.isPolled ? nil : watch
            }
            return state[port]?.isPolled ?? true
        }
        if isPolled { watch.stop() }
        let observation = LaunchObservation(launchID: answer.launchID, isContinuous: !isPolled) {
            if isPolled { true } else { await watch.isUnbroken() }
        }
        launches.begin(observation, of: port)
        return observation
    }

    /// Waits for the end of an observation, and reports it.
    private func hold(_ port: RoutePort, _ observation: LaunchObservation) async {
        guard let current = state.withLock({ $0[port] }) else { return }
        if let watch = current.watch { await hold(watch, port) } else { await poll(current.route, port) }
        launches.end(observation, of: port)
        let isShort = current.watch.map { $0.age < Self.shortestPause } ?? false
        state.withLock { state in
            state.update(port) {
                $0.watch = nil
                $0.shortWatches = isShort ? $0.shortWatches + 1 : 0
                $0.isPolled = $0.shortWatches >= Self.shortWatchLimit
            }
        }
        if isWanted(port), !Task.isCancelled { endingsContinuation.yield(current.route) }
    }

    /// Waits for the end of a watch, or until the port is not needed any more.
    private func hold(_ watch: LaunchWatch, _ port: RoutePort) async {
        while !Task.isCancelled, isWanted(port), let current = state.withLock({ $0[port] }) {
            // A watch on demand may get an owner until its time is over.
            let limit = current.owners.isEmpty ? current.demandEnd - timer.elapsed : Self.longestWait
            let isOver = try? await withTimeout(limit, clock: clock) {
                try? await watch.hold()
                return true
            }
            if isOver == true { return }
        }
        watch.stop()
    }

    /// Dials a server that keeps no idle connections, until it refuses a connection or its phone is gone.
    private func poll(_ route: Route, _ port: RoutePort) async {
        while isWanted(port), (try? await clock.sleep(for: Self.pollInterval)) != nil {
            do {
                _ = try await withTimeout(Self.timeout, clock: clock) { [dialer] in
                    let connection = try await dialer.dial(route)
                    _ = consume connection
                }
            } catch let failure as DialError where failure.provesEnd {
                return
            } catch {}
        }
    }

    private func isWanted(_ port: RoutePort) -> Bool {
        state.withLock { $0[port]?.isWanted(at: timer.elapsed) ?? false }
    }
}

extension DialError {
    /// True if no server listens on the port, or the phone is gone.
    fileprivate var provesEnd: Bool { [.refused, .deviceAbsent, .usbmuxdAbsent].contains(reason) }
}
