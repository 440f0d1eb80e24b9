import Apps
import Model
import SystemIO

/// Sends one message to an app over a connection and reads until its response.
///
/// The response is JSON or an event stream, as the app chooses.
struct UpstreamRoundTrip {
    /// Reserves the bytes of a large response, see `ConnectionPool.reserve`.
    typealias Reserve =
        @Sendable (Int, LargeResponseReservation?, UpstreamConnection, _ limit: Duration) async throws ->
        LargeResponseReservation?

    /// The message's ID; nil for a message without a response.
    private let id: RPCID?
    private let limits: ResponseLimits
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let decoder: ServerMessageDecoder
    /// Receives messages before the response: notifications and the app's requests.
    private let onMessage: @Sendable (RPCMessage) -> Void
    private let reserve: Reserve
    /// Called when the head of an event stream has arrived.
    private let opened: (@Sendable () -> Void)?
    /// Returns the delay by requests to the client.
    private let delay: @Sendable () -> ClientDelay

    private var parser = HTTPResponseParser()
    private var head: HTTPResponseHead?
    private var body: ResponseBody?
    private var reservation: LargeResponseReservation?
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
        decoder: ServerMessageDecoder = ServerMessageDecoder(redactor: TokenRedactor([]), record: { _ in }),
        delay: @escaping @Sendable () -> ClientDelay = { ClientDelay() },
        reserve: @escaping Reserve = { _, _, _, _ in nil },
        opened: (@Sendable () -> Void)? = nil,
        onMessage: @escaping @Sendable (RPCMessage) -> Void
    ) {
        self.id = id
        self.limits = limits
        self.clock = clock
        self.onMessage = onMessage
        self.delay = delay
        self.opened = opened
        self.reserve = reserve
        self.decoder = decoder
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
            if let early { try await feed(early, from: connection) }
            while !isComplete { try await readMore(from: connection) }
            return try await makeResponse()
        } catch is UpstreamConnection.Failure {
            throw AppError.responseLost
        } catch let error as HTTPParseError {
            throw error.appError
        } catch let error as ContentError {
            throw error.appError
        }
    }

    private mutating func readMore(from connection: UpstreamConnection) async throws {
        var bytes = try connection.receiveNow()
        while bytes == nil, let left = remainingTime {
            bytes = try await connection.receive(within: left, clock: clock)
        }
        guard let bytes else { throw AppError.timedOut(seconds: (watch.elapsed - start).roundedSeconds) }
        guard bytes.isEmpty else { return try await feed(bytes, from: connection) }
        try reservation?.check()
        try parser.finish()
        isComplete = true
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

    private mutating func feed(_ bytes: [UInt8], from connection: UpstreamConnection) async throws {
        parser.append(bytes)
        while !isComplete, let event = try parser.next() {
            switch event {
            case .head(let head):
                self.head = head
                body = try ResponseBody(head, limit: limits.bytes)
                if head.status == 200, body?.isEventStream == true { opened?() }
            case .body(let part):
                try body?.append(part)
                while !isComplete, let events = try body?.next() {
                    // A small compressed body may have millions of events.
                    guard remainingTotal(with: delay()) > .zero else {
                        throw AppError.timedOut(seconds: limits.total.roundedSeconds)
                    }
                    try await handle(events)
                    await Task.yield()
                    if body?.isEventStream == true, outcome != nil { isComplete = true }
                    if !isComplete { try await hold(body?.heldBytes ?? 0, from: connection) }
                }
            case .end: isComplete = true
            }
        }
        if body?.isEventStream != true { lastActivity = watch.elapsed }
    }

    private mutating func handle(_ events: [ServerSentEvent]) async throws {
        // A comment keeps the stream alive without activity of the app; a message is activity.
        for event in events where !event.data.isEmpty {
            guard let messages = try await messages(of: event) else { continue }
            handle(messages)
            lastActivity = watch.elapsed
        }
    }

    /// Returns nil for an event that is no message of MCP, such as `ping`, or a text without JSON.
    private func messages(of event: ServerSentEvent) async throws -> [RPCMessage]? {
        do { return try await decoder.messages(in: event.data[...]) } catch {
            guard event.name == "message" else { return nil }
            guard !ServerMessageDecoder.isMessage(event.data) else { throw error }
            decoder.record(.foreignText)
            return nil
        }
    }

    /// Reserves the bytes in memory. The time of a wait is not silence of the app.
    private mutating func hold(_ count: Int, from connection: UpstreamConnection) async throws {
        guard count > LargeResponseBudget.largeSize || reservation != nil else { return }
        let start = watch.elapsed
        reservation = try await reserve(count, reservation, connection, remainingTotal(with: delay()))
        lastActivity += watch.elapsed - start
    }

    private mutating func handle(_ messages: [RPCMessage]) {
        for message in messages {
            if case .response(let answered, let outcome) = message {
                // A response without an ID answers an unreadable request, which is the only one on this stream. The
                // first of two responses counts.
                if id != nil, self.outcome == nil, answered == id || answered == nil { self.outcome = outcome }
            } else {
                onMessage(message)
            }
        }
    }

    private mutating func makeResponse() async throws -> UpstreamResponse {
        guard let head else { throw AppError.responseLost }
        let isSuccess = (200..<300).contains(head.status)
        if outcome == nil, let last = try body?.finish() {
            // An event that is cut off is no message.
            try? await handle(last)
        }
        let (isEventStream, text) = (body?.isEventStream == true, body?.text ?? [])
        if !isEventStream, !text.isEmpty {
            do {
                handle(try await decoder.messages(in: text[...]))
            } catch {
                // An error status may come with a text for people; a success must be valid JSON.
                if isSuccess, id != nil { throw error }
            }
        }
        if outcome != nil { for deviation in body?.deviations ?? [] { decoder.record(deviation) } }
        reservation?.complete()
        if isSuccess, id != nil, outcome == nil {
            guard !isEventStream else { throw AppError.responseLost }
            throw AppError.invalidResponse("status \(head.status) and no answer in the body")
        }
        let refusal = id != nil && outcome == nil && head.status >= 400 ? refusal(with: head, text) : nil
        if (500..<600).contains(head.status), let refusal {
            throw AppError.invalidResponse("status \(head.status)\(refusal)")
        }
        return UpstreamResponse(
            status: head.status,
            sessionID: head["mcp-session-id"].flatMap { HeaderEncoding.isVisibleASCII($0) ? $0 : nil },
            outcome: outcome,
            size: body?.size ?? 0,
            reservation: reservation,
            refusal: refusal,
            location: head["location"].map(decoder.redactor.redact)
        )
    }

    /// Returns the server's own text for an error status, which is the only available detail, and `Retry-After` (RFC
    /// 9110, section 10.2.3).
    private func refusal(with head: HTTPResponseHead, _ body: [UInt8]) -> String {
        let said = String(decoding: body.prefix(8_192), as: UTF8.self)
        let text = SanitizedText(decoder.redactor.redact(said), limit: 200)
        let pause = SanitizedText(head["retry-after"] ?? "", limit: 40)
        let unit = pause.text.allSatisfy(\.isNumber) ? " s" : ""
        return (text.isEmpty ? "" : ", \"\(text)\"") + (pause.isEmpty ? "" : ", Retry-After: \(pause)\(unit)")
    }
}
