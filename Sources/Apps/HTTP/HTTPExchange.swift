package import Model
package import SystemIO

/// Sends one HTTP request to an app over a connection, and reads the response.
///
/// The response is a body or an event stream, as the app chooses. Redirects are not followed, because their target is not
/// approved.
package struct HTTPExchange {
    /// Reserves the bytes of a response that have arrived, if the response is large. May wait for other responses of the
    /// app.
    ///
    /// Gets the number of bytes in memory, the reservation so far, the connection, and the longest wait. The
    /// connection ends if the response is aborted in favour of other apps. Returns nil for a small response.
    package typealias Reserve =
        @Sendable (Int, LargeResponseReservation?, AppConnection, Duration) async throws -> LargeResponseReservation?

    private let request: AppHTTPRequest
    private let connection: AppConnection
    private let limits: ResponseLimits
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let delay: @Sendable () -> ClientDelay
    private let reserve: Reserve
    private let opened: (@Sendable () -> Void)?

    private let start: Duration
    /// The time of the last activity of the app.
    private var lastActivity: Duration
    private var isAtEnd = false
    /// The parser with the rest of the response, which must be read before the next response on the connection.
    package private(set) var parser = HTTPResponseParser()
    package private(set) var head: HTTPResponseHead?
    package private(set) var body: ResponseBody?
    /// Held until a large response has been reduced; nil for a small one.
    package private(set) var reservation: LargeResponseReservation?

    /// - Parameters:
    ///   - request: The request.
    ///   - connection: The connection, on which no other response is outstanding.
    ///   - limits: The limits of the response.
    ///   - clock: The clock of the limits.
    ///   - watch: A timer by this clock; nil for a new one.
    ///   - delay: Returns the delay by requests to the client, which does not count for the limits.
    ///   - reserve: Reserves the bytes of a large response.
    ///   - opened: Called when the head of an event stream has arrived.
    package init(
        _ request: AppHTTPRequest,
        over connection: AppConnection,
        limits: ResponseLimits,
        clock: any Clock<Duration>,
        watch: ElapsedTimer? = nil,
        delay: @escaping @Sendable () -> ClientDelay = { ClientDelay() },
        reserve: @escaping Reserve = { _, _, _, _ in nil },
        opened: (@Sendable () -> Void)? = nil
    ) {
        self.request = request
        self.connection = connection
        self.limits = limits
        self.clock = clock
        self.watch = watch ?? ElapsedTimer(clock)
        self.delay = delay
        self.reserve = reserve
        self.opened = opened
        start = self.watch.elapsed
        lastActivity = start
    }

    /// Sends the request.
    ///
    /// - Throws: `ExchangeError.unwritten`, `.blocked`, `.notPermitted`; `CancellationError`.
    package mutating func send(by permission: AppConnection.Permission? = nil) async throws {
        let bytes = request.bytes(host: connection.route.hostHeader)
        do {
            try await connection.send(bytes, by: permission, within: limits.total, clock: clock)
        } catch ExchangeError.unwritten {
            // A server may reject a request by its head, answer, and close before the body is written.
            guard let early = try? connection.receiveNow(), !early.isEmpty else { throw ExchangeError.unwritten }
            parser.append(early)
        }
    }

    /// Reads on until events have arrived. The caller handles them before the next call.
    ///
    /// - Returns: The events; nil at the end of the response.
    /// - Throws: `ExchangeError`, `CancellationError`.
    package mutating func next() async throws -> [ServerSentEvent]? {
        while !isAtEnd {
            try await hold()
            if let events = try body?.next() {
                // A small compressed body may have millions of events.
                guard remainingTotal(with: delay()) > .zero else {
                    throw ExchangeError.timedOut(seconds: limits.total.roundedSeconds)
                }
                await Task.yield()
                if !events.isEmpty { return events }
            } else if let event = try parser.next() {
                try handle(event)
            } else {
                try await readMore()
            }
        }
        return nil
    }

    /// Ends the body.
    ///
    /// - Returns: Its last events.
    /// - Throws: `ExchangeError.interrupted` for an incomplete body.
    package mutating func finish() throws -> [ServerSentEvent] { try body?.finish() ?? [] }

    /// Records activity of the app, such as a message on an event stream.
    package mutating func recordActivity() { lastActivity = watch.elapsed }

    private mutating func handle(_ event: HTTPResponseParser.Event) throws(ExchangeError) {
        switch event {
        case .head(let head):
            self.head = head
            let body = try ResponseBody(head, limit: limits.bytes, mayBeEvents: request.acceptsEvents)
            if head.status == 200, body.isEventStream { opened?() }
            self.body = body
        case .body(let part): try body?.append(part)
        case .end: isAtEnd = true
        }
    }

    private mutating func readMore() async throws {
        // A comment keeps an event stream alive without activity of the app.
        if body?.isEventStream != true { recordActivity() }
        var bytes = try connection.receiveNow()
        while bytes == nil, let left = remainingTime {
            bytes = try await connection.receive(within: left, clock: clock)
        }
        guard let bytes else { throw ExchangeError.timedOut(seconds: (watch.elapsed - start).roundedSeconds) }
        if bytes.isEmpty {
            try reservation?.check()
            try parser.finish()
            isAtEnd = true
        }
        parser.append(bytes)
    }

    /// The time until the next timeout; nil if a timeout has passed. A request to the client suspends the timeouts,
    /// because it has its own.
    private var remainingTime: Duration? {
        let delay = delay()
        let idle = reservation == nil ? limits.idle : min(limits.idle, LargeResponseBudget.stallLimit)
        let silence = idle - (watch.elapsed - max(lastActivity, delay.until))
        let left = delay.isActive ? limits.idle : min(silence, remainingTotal(with: delay))
        return left > .zero ? left : nil
    }

    private func remainingTotal(with delay: ClientDelay) -> Duration {
        limits.total + delay.duration - (watch.elapsed - start)
    }

    /// Reserves the bytes in memory. The time of a wait is not silence of the app.
    private mutating func hold() async throws {
        let count = body?.heldBytes ?? 0
        guard count > LargeResponseBudget.largeSize || reservation != nil else { return }
        let start = watch.elapsed
        reservation = try await reserve(count, reservation, connection, remainingTotal(with: delay()))
        lastActivity += watch.elapsed - start
    }
}

extension HTTPExchange {
    /// Sends the request and reads the whole response. Of an event stream, returns the first event with a JSON object.
    ///
    /// - Throws: `ExchangeError`, `CancellationError`.
    package mutating func response(by permission: AppConnection.Permission? = nil) async throws -> AppResponse {
        func isMessage(_ event: ServerSentEvent) -> Bool { event.data.contains(UInt8(ascii: "{")) }
        try await send(by: permission)
        var message: ServerSentEvent?
        // The server may keep an event stream open after its message.
        while message == nil, let events = try await next() { message = events.first(where: isMessage) }
        if message == nil { message = try finish().first(where: isMessage) }
        guard let head, let body, message != nil || !body.isEventStream else { throw ExchangeError.interrupted }
        reservation?.complete()
        return AppResponse(status: head.status, contentType: head["content-type"], body: message?.data ?? body.text)
    }
}
