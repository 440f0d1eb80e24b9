import Synchronization

/// One unbroken observation of the server at a port, which begins and ends with one launch of the app at the latest.
///
/// A secret that the server accepted during an observation belongs to the observed launch. The observation ends with the
/// first sign that the server has ended, and never resumes. Two observations are equal only if they are the same one.
package final class LaunchObservation: Sendable {
    /// The launch ID that the server reported without a secret when the observation began; nil if it reports none.
    package let launchID: SanitizedText?
    /// False if the port is only dialled at intervals, because its server keeps no idle connection.
    package let isContinuous: Bool
    private let hasEnded = Atomic(false)
    private let check: @Sendable () async -> Bool

    /// - Parameters:
    ///   - launchID: The launch ID that the server reports.
    ///   - isContinuous: False if the port is only dialled at intervals.
    ///   - check: Returns false if the server has ended since the observation began.
    package init(
        launchID: SanitizedText? = nil,
        isContinuous: Bool = true,
        check: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.launchID = launchID
        self.isContinuous = isContinuous
        self.check = check
    }

    package var isEnded: Bool { hasEnded.load(ordering: .acquiring) }

    /// Ends the observation.
    package func end() { hasEnded.store(true, ordering: .releasing) }

    /// Returns whether the observed launch still runs.
    ///
    /// Call it after a connection to the port is established, and before a secret is sent over that connection. The
    /// connection then leads to the observed launch, because no other server can listen on its port before it ends.
    package func isUnbroken() async -> Bool {
        guard !isEnded else { return false }
        if await !check() { end() }
        return !isEnded
    }
}

extension LaunchObservation: Hashable {
    package static func == (one: LaunchObservation, other: LaunchObservation) -> Bool { one === other }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The current observation of each observed port.
package final class ObservedLaunches: Sendable {
    private let observations = Mutex<[RoutePort: LaunchObservation]>([:])
    private let subscribers = Broadcast<Void>(slow: .keepsNewest(1))
    private let observe = Mutex<(@Sendable (Route) async -> LaunchObservation?)?>(nil)

    package init() {}

    /// The current observation of the port that a route leads to; nil if the port is not observed.
    package subscript(_ route: Route) -> LaunchObservation? {
        observations.withLock { $0[RoutePort(route)] }.flatMap { $0.isEnded ? nil : $0 }
    }

    /// Sets the function that begins an observation on demand.
    package func setObserver(_ observer: @escaping @Sendable (Route) async -> LaunchObservation?) {
        observe.withLock { $0 = observer }
    }

    /// Returns the current observation of a port, and begins one if there is none.
    ///
    /// - Returns: Nil if no server can be observed there now.
    package func observation(of route: Route) async -> LaunchObservation? {
        if let current = self[route] {
            if await current.isUnbroken() { return current }
            end(current, of: RoutePort(route))
        }
        return await observe.withLock { $0 }?(route)
    }

    /// Records the observation of a port.
    package func begin(_ observation: LaunchObservation, of port: RoutePort) {
        observations.withLock { $0[port] = observation }
        subscribers.send(())
    }

    /// Subscribes to new observations.
    package func changes() -> AsyncStream<Void> { subscribers.subscribe() }

    /// Ends an observation of a port.
    package func end(_ observation: LaunchObservation, of port: RoutePort) {
        observation.end()
        observations.withLock { if $0[port] == observation { $0[port] = nil } }
    }
}
