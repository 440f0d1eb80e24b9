import Model
import SystemIO

/// A port whose launches are watched, or should be.
struct WatchedPort {
    let route: Route
    /// The endpoints that need the watch.
    var owners: Set<EndpointID> = []
    /// The end of the demand for the watch, beside its owners.
    var demandEnd = Duration.zero
    /// True if a task works on the port.
    var isRunning = false
    var watch: LaunchWatch?
    /// Opened when the current attempt to begin a watch has ended.
    var attempt: AsyncLatch?
    /// Completed to end the pause before the next attempt; nil outside of a pause.
    var retry: Promise<Void>?
    /// The number of watches in succession that ended within a second.
    var shortWatches = 0
    /// True if the server serves one connection at a time, or ends idle connections at once.
    var isPolled = false

    init(route: Route) { self.route = route }

    func isWanted(at now: Duration) -> Bool { !owners.isEmpty || now < demandEnd }
}

/// The ports that endpoints and callers need watched.
struct WatchedPorts {
    /// The maximum number of watched ports in total, and on phones. usbmuxd's connections are limited to 512, and tunnels
    /// need most of them.
    static let limit = 2_048
    static let deviceLimit = 128

    private var ports: [RoutePort: WatchedPort] = [:]
    /// The routes that each endpoint needs watched.
    private var routes: [EndpointID: Set<Route>] = [:]
    private var deviceCount = 0

    subscript(_ port: RoutePort) -> WatchedPort? { ports[port] }

    /// Sets the routes that an endpoint needs watched.
    ///
    /// - Returns: The ports on which work must be started, the pauses to end, and the watches that are not needed
    ///   any more. A pause ends because the endpoint has changed.
    mutating func set(
        _ new: Set<Route>,
        of id: EndpointID,
        at now: Duration
    ) -> (added: [RoutePort], pauses: [Promise<Void>], removed: [LaunchWatch]) {
        let former = routes[id] ?? []
        routes[id] = new.isEmpty ? nil : new
        let removed = Set(former.map { RoutePort($0) }).subtracting(new.map { RoutePort($0) })
        for port in removed { ports[port]?.owners.remove(id) }
        return (
            new.compactMap { start($0, ownedBy: id) },
            new.compactMap { ports[RoutePort($0)]?.retry },
            removed.compactMap { ports[$0].flatMap { $0.isWanted(at: now) ? nil : $0.watch } }
        )
    }

    /// Adds a port unless a limit is reached.
    ///
    /// - Returns: The port, if work on it must be started.
    mutating func start(_ route: Route, ownedBy id: EndpointID? = nil, until demandEnd: Duration? = nil) -> RoutePort? {
        let port = RoutePort(route)
        if ports[port] == nil {
            guard ports.count < Self.limit, route.isNetwork || deviceCount < Self.deviceLimit else { return nil }
            ports[port] = WatchedPort(route: route)
            if !route.isNetwork { deviceCount += 1 }
        }
        if let id { ports[port]?.owners.insert(id) }
        if let demandEnd { ports[port]?.demandEnd = demandEnd }
        guard ports[port]?.isRunning == false else { return nil }
        ports[port]?.isRunning = true
        return port
    }

    /// Returns whether a port is still needed, and removes it otherwise.
    mutating func keep(_ port: RoutePort, at now: Duration) -> Bool {
        guard let current = ports[port] else { return false }
        if current.isWanted(at: now) { return true }
        ports[port] = nil
        if !current.route.isNetwork { deviceCount -= 1 }
        return false
    }

    /// Changes the state of a port. Does nothing if the port is not watched.
    mutating func update(_ port: RoutePort, _ change: (inout WatchedPort) -> Void) {
        guard var current = ports[port] else { return }
        change(&current)
        ports[port] = current
    }
}
