import AccessControl
import Model
import SystemIO

/// The HTTP connections to one app: dials new ones, and keeps idle ones for the next request.
actor ConnectionPool {
    /// The longest dial time per route, in seconds. A shorter limit of the caller is enforced separately.
    private static let dialLimit = Duration.seconds(5)

    nonisolated let id: EndpointID
    private let dialer: any Dialer
    nonisolated let clock: any Clock<Duration>
    nonisolated let watch: ElapsedTimer
    private let tasks: BackgroundTasks
    private let largeResponses: LargeResponseBudget
    private let deviations: ServerDeviations
    private var idle: [PooledConnection] = []
    /// Indicates whether a background task closes idle connections.
    private var isClosingIdle = false

    init(
        to id: EndpointID,
        dialer: any Dialer,
        clock: any Clock<Duration>,
        watch: ElapsedTimer,
        tasks: BackgroundTasks,
        largeResponses: LargeResponseBudget = LargeResponseBudget(),
        deviations: ServerDeviations = ServerDeviations()
    ) {
        self.id = id
        self.dialer = dialer
        self.clock = clock
        self.watch = watch
        self.tasks = tasks
        self.largeResponses = largeResponses
        self.deviations = deviations
    }

    /// Records that a deviation of the server was repaired.
    nonisolated func record(_ deviation: ServerDeviation.Kind) { deviations.record(deviation, of: id) }

    /// Reserves the bytes of a response that have arrived, if the response is large. May wait for other responses of the
    /// app.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes in memory.
    ///   - reservation: The reservation so far.
    ///   - connection: The connection, which ends if the response is aborted in favour of other apps.
    ///   - limit: The longest wait.
    /// - Returns: The reservation; nil for a small response.
    /// - Throws: `ExchangeError`, `CancellationError`.
    nonisolated func reserve(
        _ bytes: Int,
        for reservation: LargeResponseReservation?,
        over connection: AppConnection,
        within limit: Duration
    ) async throws -> LargeResponseReservation? {
        guard bytes > LargeResponseBudget.largeSize else { return nil }
        let reservation =
            reservation ?? largeResponses.begin(for: id) { [weak connection] in connection?.abort() }
        try await reservation.reserve(bytes, within: limit, clock: clock)
        return reservation
    }

    /// Returns a connection to the first route that works, within the time limit.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func open(
        _ routes: [AuthorizedRoute],
        mayReuse: Bool,
        within limit: Duration
    ) async throws -> (AppConnection, AuthorizedRoute, isPooled: Bool) {
        guard limit < Self.dialLimit * routes.count else { return try await open(routes, mayReuse: mayReuse) }
        let opened = try await withTimeout(limit, clock: clock) {
            try await self.open(routes, mayReuse: mayReuse)
        }
        guard let opened else {
            throw AppError.unreachable(DialError(.timedOut, "\(id) was not reached within \(limit)"))
        }
        return opened
    }

    /// Returns a pooled connection to the first route, or dials the routes in order.
    func open(
        _ routes: [AuthorizedRoute],
        mayReuse: Bool
    ) async throws -> (AppConnection, AuthorizedRoute, isPooled: Bool) {
        if mayReuse, let route = routes.first {
            while var pooled = idle.popLast() {
                guard pooled.connection.route == route.route, watch.elapsed - pooled.since < PooledConnection.lifetime
                else { continue }
                if let connection = pooled.takeIfReady() { return (connection, route, true) }
            }
        }
        var failures: [DialError] = []
        for route in routes {
            do {
                let connection = try await dialer.dial(route.route)
                return (AppConnection(over: route.route, connection), route, false)
            } catch let failure as DialError {
                failures.append(failure)
            }
            try Task.checkCancellation()
        }
        throw AppError.unreachable(failures.first ?? DialError(.noRoute, "\(id) has no route now"))
    }

    /// Adds a connection after its response, if the app may keep it open.
    func add(_ connection: PooledConnection) {
        guard connection.mayBecomeReusable else { return }
        idle.append(connection)
        guard !isClosingIdle else { return }
        isClosingIdle = true
        tasks.schedule { [clock] in
            repeat {
                guard (try? await clock.sleep(for: PooledConnection.lifetime)) != nil else { return }
            } while await self.closeIdle()
        }
    }

    /// Closes all idle connections.
    func removeAll() { idle = [] }

    /// Closes connections with an idle time above the limit.
    ///
    /// - Returns: Whether connections are left that must be checked again.
    private func closeIdle() -> Bool {
        let now = watch.elapsed
        idle.removeAll { now - $0.since >= PooledConnection.lifetime }
        isClosingIdle = !idle.isEmpty
        return isClosingIdle
    }
}

/// An idle connection that the app keeps open for the next request.
struct PooledConnection: Sendable {
    /// The maximum idle time, in seconds. Servers close idle connections after 5 s or more (uvicorn), and a request
    /// that meets that close is lost. The pool therefore closes first.
    static let lifetime = Duration.seconds(2)

    let connection: AppConnection
    private var rest: HTTPResponseParser
    let since: Duration

    /// Creates a pooled connection. The parser may still expect bytes: an event stream ends after its last message.
    init(_ connection: AppConnection, rest: HTTPResponseParser, since: Duration) {
        self.connection = connection
        self.rest = rest
        self.since = since
    }

    /// Indicates whether the connection can be reused after the end of the response.
    var mayBecomeReusable: Bool { !rest.isLastResponse }

    /// Returns the connection if the last response is complete, and neither an end nor further bytes have arrived.
    mutating func takeIfReady() -> AppConnection? { (try? isReady()) == true ? connection : nil }

    private mutating func isReady() throws -> Bool {
        while true {
            while let event = try rest.next() {
                // A response without a request.
                if case .head = event { return false }
            }
            guard let bytes = try connection.receiveNow() else { return rest.isReusable }
            guard !bytes.isEmpty else { return false }
            rest.append(bytes)
        }
    }
}
