import Model
import Profiles
import SystemIO

/// Sends one plain HTTP request over a new connection, and reads the whole response.
///
/// Redirects are not followed, because their target is not approved.
struct ProfileRoundTrip {
    /// A response with the permit for its size.
    struct Response {
        let content: ProfileResponse
        /// Held until a large result has been reduced; nil for a small response.
        let permit: Permit?
    }

    private let limits: ResponseLimits
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private var parser = HTTPResponseParser()
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []
    private var permit: Permit?
    private var isComplete = false

    init(limits: ResponseLimits, clock: any Clock<Duration>) {
        self.limits = limits
        self.clock = clock
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
            if let early { try await feed(early) }
            while !isComplete { try await readMore(from: connection) }
        } catch is UpstreamConnection.Failure {
            throw AppError.responseLost
        } catch let error as HTTPParseError {
            throw error.appError
        }
        guard let head else { throw AppError.responseLost }
        let content = ProfileResponse(status: head.status, contentType: head["content-type"], body: body)
        return Response(content: content, permit: permit)
    }

    private mutating func readMore(from connection: UpstreamConnection) async throws {
        let left = min(limits.idle, limits.total - watch.elapsed)
        guard left > .zero, let bytes = try await connection.receive(within: left, clock: clock) else {
            throw AppError.timedOut(seconds: watch.elapsed.roundedSeconds)
        }
        guard bytes.isEmpty else { return try await feed(bytes) }
        try parser.finish()
        isComplete = true
    }

    private mutating func feed(_ bytes: [UInt8]) async throws {
        parser.append(bytes)
        while !isComplete, let event = try parser.next() {
            switch event {
            case .head(let head): self.head = head
            case .body(let part):
                guard body.count + part.count <= limits.bytes else {
                    throw HTTPParseError.tooLarge(limit: limits.bytes)
                }
                body += part
                guard permit == nil, body.count > UpstreamRoundTrip.largeSize else { continue }
                permit = try await UpstreamRoundTrip.largeResponses.acquire()
            case .end: isComplete = true
            }
        }
    }
}
