import Apps
import Model
import SystemIO

/// Sends one plain HTTP request over a new connection, and reads the whole response.
///
/// Redirects are not followed, because their target is not approved.
struct ProfileRoundTrip {
    /// A response with the reservation for its size.
    struct Response {
        let content: ProfileResponse
        /// Held until a large result has been reduced; nil for a small response.
        let reservation: LargeResponseReservation?
    }

    private let limits: ResponseLimits
    private let pool: ConnectionPool
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private var parser = HTTPResponseParser()
    private var head: HTTPResponseHead?
    private var content: ContentDecoder?
    private var body: [UInt8] = []
    private var reservation: LargeResponseReservation?
    private var isComplete = false

    init(limits: ResponseLimits, pool: ConnectionPool) {
        self.limits = limits
        self.pool = pool
        clock = pool.clock
        watch = ElapsedTimer(clock)
    }

    /// Sends the request and reads until the end of its response.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    mutating func run(
        _ bytes: [UInt8],
        over connection: UpstreamConnection,
        by admission: DeliveryAuthorization?
    ) async throws -> Response {
        do {
            let early = try await connection.sendRequest(bytes, by: admission, within: limits.total, clock: clock)
            if let early { try await feed(early, from: connection) }
            while !isComplete { try await readMore(from: connection) }
            if let rest = try content?.finish() { body += rest }
        } catch is UpstreamConnection.Failure {
            throw AppError.responseLost
        } catch let error as HTTPParseError {
            throw error.appError
        } catch let error as ContentError {
            throw error.appError
        }
        guard let head else { throw AppError.responseLost }
        if content?.isCoded == true { pool.record(.contentCoding) }
        reservation?.complete()
        let content = ProfileResponse(status: head.status, contentType: head["content-type"], body: body)
        return Response(content: content, reservation: reservation)
    }

    private mutating func readMore(from connection: UpstreamConnection) async throws {
        let idle = reservation == nil ? limits.idle : min(limits.idle, LargeResponseBudget.stallLimit)
        let left = min(idle, limits.total - watch.elapsed)
        guard left > .zero, let bytes = try await connection.receive(within: left, clock: clock) else {
            throw AppError.timedOut(seconds: watch.elapsed.roundedSeconds)
        }
        guard bytes.isEmpty else { return try await feed(bytes, from: connection) }
        try reservation?.check()
        try parser.finish()
        isComplete = true
    }

    private mutating func feed(_ bytes: [UInt8], from connection: UpstreamConnection) async throws {
        parser.append(bytes)
        while !isComplete, let event = try parser.next() {
            switch event {
            case .head(let head):
                self.head = head
                content = try head.contentDecoder(limit: limits.bytes)
            case .body(let part):
                try content?.append(part)
                while let decoded = try content?.next() {
                    body += decoded
                    reservation = try await pool.reserve(
                        body.count,
                        for: reservation,
                        over: connection,
                        within: limits.total - watch.elapsed
                    )
                }
            case .end: isComplete = true
            }
        }
    }
}
