import JSON
import Model
import SystemIO

/// Sends one message to an app over a connection and reads until its response.
///
/// The response is JSON or an event stream, as the app chooses. Redirects are not followed, because their target is not
/// approved.
struct UpstreamRoundTrip {
    private static let eventStream = "text/event-stream"
    /// The size in bytes above which a response is large and needs a permit.
    static let largeSize = 1 << 20
    /// Permits for large responses in memory, of all apps together. Further ones wait in the kernel's socket buffers.
    static let largeResponses = AsyncSemaphore(permits: 3)

    /// The message's ID; nil for a message without a response.
    private let id: RPCID?
    private let limits: ResponseLimits
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let redactor: TokenRedactor
    /// Receives messages before the response: notifications and the app's requests.
    private let onMessage: @Sendable (RPCMessage) -> Void
    /// Called when the head of the response has arrived.
    private let opened: (@Sendable () -> Void)?
    /// Returns the delay by requests to the client.
    private let pause: @Sendable () -> ClientRequestForwarder.Pause

    private var parser = HTTPResponseParser()
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []
    private var events = SSEDecoder()
    private var size = 0
    private var permit: Permit?
    private var outcome: Result<JSON, RPCError>?
    private var isComplete = false
    /// The time of the last activity of the app.
    private var lastActivity = Duration.zero
    private var start = Duration.zero

    /// The parser with the rest of the response, which must be read before the next one.
    var rest: HTTPResponseParser { parser }

    init(
        awaiting id: RPCID?,
        limits: ResponseLimits,
        clock: any Clock<Duration>,
        watch: ElapsedTimer? = nil,
        redactor: TokenRedactor = TokenRedactor([]),
        pause: @escaping @Sendable () -> ClientRequestForwarder.Pause = { ClientRequestForwarder.Pause() },
        opened: (@Sendable () -> Void)? = nil,
        onMessage: @escaping @Sendable (RPCMessage) -> Void
    ) {
        self.id = id
        self.limits = limits
        self.clock = clock
        self.onMessage = onMessage
        self.pause = pause
        self.opened = opened
        self.redactor = redactor
        self.watch = watch ?? ElapsedTimer(clock)
    }

    /// Sends the request and reads until its response.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    mutating func run(
        _ bytes: [UInt8],
        over connection: UpstreamConnection,
        by admission: DeliveryAuthorization? = nil
    ) async throws -> UpstreamResponse {
        (start, lastActivity) = (watch.elapsed, watch.elapsed)
        do {
            let early = try await connection.sendRequest(bytes, by: admission, within: limits.total, clock: clock)
            if let early { try await feed(early) }
            while !isComplete { try await readMore(from: connection) }
            return try await makeResponse()
        } catch is UpstreamConnection.Failure {
            throw AppError.responseLost
        } catch let error as HTTPParseError {
            throw error.appError
        } catch let error as JSONError {
            throw AppError.invalidResponse(
                "invalid JSON (\(error.reason.rawValue), at byte \(error.offset))"
            )
        } catch let error as RPCError {
            throw AppError.invalidResponse("invalid JSON-RPC (\(error.message))")
        }
    }

    private mutating func readMore(from connection: UpstreamConnection) async throws {
        var bytes = try connection.receiveNow()
        while bytes == nil, let left = remainingTime {
            bytes = try await connection.receive(within: left, clock: clock)
        }
        guard let bytes else { throw AppError.timedOut(seconds: (watch.elapsed - start).roundedSeconds) }
        guard bytes.isEmpty else { return try await feed(bytes) }
        try parser.finish()
        isComplete = true
    }

    /// The time until the next timeout; nil if a timeout has passed. A request to the client suspends the timeouts,
    /// because it has its own.
    private var remainingTime: Duration? {
        let pause = pause()
        let silence = limits.idle - (watch.elapsed - max(lastActivity, pause.until))
        let left = pause.isActive ? limits.idle : min(silence, limits.total + pause.duration - (watch.elapsed - start))
        return left > .zero ? left : nil
    }

    private mutating func feed(_ bytes: [UInt8]) async throws {
        parser.append(bytes)
        while !isComplete, let event = try parser.next() {
            switch event {
            case .head(let head):
                self.head = head
                opened?()
            case .body(let part):
                size += part.count
                guard size <= limits.bytes else { throw HTTPParseError.tooLarge(limit: limits.bytes) }
                if head?.mediaType == Self.eventStream {
                    try await feed(events: part)
                } else {
                    body += part
                    try await acquireLargePermit(for: body.count)
                }
            case .end: isComplete = true
            }
        }
        if head?.mediaType != Self.eventStream { lastActivity = watch.elapsed }
    }

    private mutating func feed(events part: ArraySlice<UInt8>) async throws {
        // A comment keeps the stream alive without activity of the app; a message is activity.
        for event in try events.append(part) where !event.data.isEmpty {
            lastActivity = watch.elapsed
            try handle(await parse(event.data))
        }
        if outcome != nil { isComplete = true } else { try await acquireLargePermit(for: events.count) }
    }

    /// Acquires a permit when a response becomes large, and releases the permit when the buffer is small again.
    private mutating func acquireLargePermit(for count: Int) async throws {
        if count <= Self.largeSize {
            permit = nil
        } else if permit == nil {
            permit = try await Self.largeResponses.acquire()
            // The time spent waiting for the permit is not silence of the app.
            lastActivity = watch.elapsed
        }
    }

    private mutating func handle(_ json: JSON) throws {
        // JSON-RPC batches: 2025-03-26 allows them in responses.
        for json in json.array ?? [json] {
            let message = try RPCMessage(json)
            if case .response(let answered, let outcome) = message {
                // A response without an ID answers an unreadable request, which is the only one on this stream. The
                // first of two responses counts.
                if id != nil, self.outcome == nil, answered == id || answered == nil { self.outcome = outcome }
            } else {
                onMessage(message)
            }
        }
    }

    private func parse(_ bytes: [UInt8]) async throws(JSONError) -> JSON {
        try await JSON.parse(bytes[...]) { [redactor] in redactor.redact($0) }
    }

    private mutating func makeResponse() async throws -> UpstreamResponse {
        guard let head else { throw AppError.responseLost }
        let isSuccess = (200..<300).contains(head.status)
        if head.mediaType != Self.eventStream, !body.isEmpty {
            do {
                try handle(await parse(body))
            } catch {
                // An error status may come with a text for people; a success must be valid JSON.
                if isSuccess, id != nil { throw error }
            }
        }
        if isSuccess, id != nil, outcome == nil {
            guard head.mediaType != Self.eventStream else { throw AppError.responseLost }
            throw AppError.invalidResponse("status \(head.status) and no answer in the body")
        }
        // The server's own error text is the only available detail.
        if id != nil, outcome == nil, (500..<600).contains(head.status) {
            let text = SanitizedText(redactor.redact(String(decoding: body.prefix(8_192), as: UTF8.self)), limit: 200)
            throw AppError.invalidResponse("status \(head.status)\(text.isEmpty ? "" : ", \"\(text)\"")")
        }
        return UpstreamResponse(
            status: head.status,
            sessionID: head["mcp-session-id"].flatMap { HeaderEncoding.isVisibleASCII($0) ? $0 : nil },
            outcome: outcome,
            size: size,
            permit: permit
        )
    }
}
