import JSON
import Model
import SystemIO

/// One message to an app over a stream, and everything that comes back until it is answered.
///
/// The answer is JSON or an event stream, as the app likes. Redirections are not followed: they would lead somewhere that
/// nobody said yes to.
struct UpstreamRoundTrip {
    private static let eventStream = "text/event-stream"
    /// An answer with more bytes is heavy: it is read only while few others are in memory.
    private static let heavy = 1 << 20
    /// All apps together may have so many heavy answers in memory. The rest of the others waits in the apps' streams.
    static let heavyAnswers = AsyncSemaphore(places: 3)

    /// The message's id; nil when it is none that is answered.
    private let id: RPCID?
    private let limits: UpstreamLimits
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    private let redactor: TokenRedactor
    /// Gets what comes before the answer: notifications and the app's own requests.
    private let heed: @Sendable (RPCMessage) -> Void
    /// Told when the head of the answer is there.
    private let opened: (@Sendable () -> Void)?
    /// Knows for how long it is the caller that is waited for.
    private let pause: @Sendable () -> ClientRequestForwarder.Pause

    private var parser = HTTPResponseParser()
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []
    private var events = SSEDecoder()
    private var size = 0
    private var permit: Permit?
    private var outcome: Result<JSON, RPCError>?
    private var isOver = false
    /// When something last came that shows the app at work.
    private var lastSign = Duration.zero
    private var start = Duration.zero

    /// What is left of the answer on the stream, to be read before the next one.
    var rest: HTTPResponseParser { parser }

    init(
        awaiting id: RPCID?,
        limits: UpstreamLimits,
        clock: any Clock<Duration>,
        watch: ElapsedTimer? = nil,
        redactor: TokenRedactor = TokenRedactor([]),
        pause: @escaping @Sendable () -> ClientRequestForwarder.Pause = { ClientRequestForwarder.Pause() },
        opened: (@Sendable () -> Void)? = nil,
        heed: @escaping @Sendable (RPCMessage) -> Void
    ) {
        self.id = id
        self.limits = limits
        self.clock = clock
        self.heed = heed
        self.pause = pause
        self.opened = opened
        self.redactor = redactor
        self.watch = watch ?? ElapsedTimer(clock)
    }

    /// Sends the bytes of a request and reads until it is answered.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    mutating func run(
        _ bytes: [UInt8],
        over connection: UpstreamConnection,
        by admission: Admission? = nil
    ) async throws -> UpstreamResponse {
        (start, lastSign) = (watch.elapsed, watch.elapsed)
        do {
            try await send(bytes, connection, admission)
            while !isOver { try await readOn(connection) }
            return try await answer()
        } catch is UpstreamConnection.Failure {
            throw Trouble.lost
        } catch HTTPParseError.unfinished {
            throw Trouble.lost
        } catch let error as HTTPParseError {
            throw Trouble.unclear("\(error)")
        } catch let error as JSONError {
            throw Trouble.unclear("something else than JSON (\(error.reason.rawValue), at byte \(error.offset))")
        } catch let error as RPCError {
            throw Trouble.unclear("something else than JSON-RPC (\(error.message))")
        }
    }

    private mutating func send(
        _ bytes: [UInt8],
        _ connection: UpstreamConnection,
        _ admission: Admission?
    ) async throws {
        do {
            try await connection.send(bytes, by: admission, within: limits.longest, clock: clock)
        } catch UpstreamConnection.Failure.unwritten {
            // A server may refuse a request by its head, answer, and close before the body has gone.
            guard let early = try? connection.receiveNow(), !early.isEmpty else { throw Trouble.unwritten }
            try await take(early)
        }
    }

    private mutating func readOn(_ connection: UpstreamConnection) async throws {
        var bytes = try connection.receiveNow()
        while bytes == nil, let left = patience {
            bytes = try await connection.receive(within: left, clock: clock)
        }
        guard let bytes else { throw Trouble.silent(seconds: Int((watch.elapsed - start).components.seconds)) }
        guard bytes.isEmpty else { return try await take(bytes) }
        try parser.finish()
        isOver = true
    }

    /// How long may be waited for more; nil for no longer. What the caller is asked takes the time that it takes: somebody else
    /// sees to its end.
    private var patience: Duration? {
        let pause = pause()
        let silence = limits.silence - (watch.elapsed - max(lastSign, pause.until))
        let left = pause.isOn ? limits.silence : min(silence, limits.longest + pause.held - (watch.elapsed - start))
        return left > .zero ? left : nil
    }

    private mutating func take(_ bytes: [UInt8]) async throws {
        parser.append(bytes)
        while !isOver, let event = try parser.next() {
            switch event {
            case .head(let head):
                self.head = head
                opened?()
            case .body(let part):
                size += part.count
                guard size <= limits.bytes else { throw HTTPParseError.tooLarge(limit: limits.bytes) }
                if head?.mediaType == Self.eventStream {
                    try await take(events: part)
                } else {
                    body += part
                    try await wait(with: body.count)
                }
            case .end: isOver = true
            }
        }
        if head?.mediaType != Self.eventStream { lastSign = watch.elapsed }
    }

    private mutating func take(events part: ArraySlice<UInt8>) async throws {
        // A comment keeps the stream alive and says nothing about the work; a message does.
        for data in events.append(part) where !data.isEmpty {
            lastSign = watch.elapsed
            try take(message: await parse(data))
        }
        if outcome != nil { isOver = true } else { try await wait(with: events.count) }
    }

    /// Waits for a place where there are so many bytes of an answer that it is heavy, and gives the place back where there are
    /// few again.
    private mutating func wait(with count: Int) async throws {
        if count <= Self.heavy {
            permit = nil
        } else if permit == nil {
            permit = try await Self.heavyAnswers.enter()
            // It is not the app that was waited for.
            lastSign = watch.elapsed
        }
    }

    private mutating func take(message json: JSON) throws {
        // JSON-RPC batches, as 2025-03-26 allows a server to answer.
        for json in json.array ?? [json] {
            let message = try RPCMessage(json)
            if case .response(let answered, let outcome) = message {
                // An answer without an id is to a request that the server could not read: ours, on this stream.
                // Of two of them the first counts: the second is to nothing.
                if id != nil, self.outcome == nil, answered == id || answered == nil { self.outcome = outcome }
            } else {
                heed(message)
            }
        }
    }

    private func parse(_ bytes: [UInt8]) async throws(JSONError) -> JSON {
        try await JSON.parse(bytes[...]) { [redactor] in redactor.redact($0) }
    }

    private mutating func answer() async throws -> UpstreamResponse {
        guard let head else { throw Trouble.lost }
        let isRight = (200..<300).contains(head.status)
        if head.mediaType != Self.eventStream, !body.isEmpty {
            do {
                try take(message: await parse(body))
            } catch {
                // What stands behind an error's status may be for people; an answer must be understood.
                if isRight, id != nil { throw error }
            }
        }
        if isRight, id != nil, outcome == nil {
            guard head.mediaType != Self.eventStream else { throw Trouble.lost }
            throw Trouble.unclear("status \(head.status) and no answer in it")
        }
        // What the server says of its own failure is all that can be told of it.
        if id != nil, outcome == nil, (500..<600).contains(head.status) {
            let text = SanitizedText(redactor.redact(String(decoding: body.prefix(8_192), as: UTF8.self)), limit: 200)
            throw Trouble.unclear("status \(head.status)\(text.isEmpty ? "" : ", \"\(text)\"")")
        }
        return UpstreamResponse(
            status: head.status,
            sessionID: head["mcp-session-id"].flatMap { HeaderValue.isVisible($0) ? $0 : nil },
            outcome: outcome,
            size: size,
            permit: permit
        )
    }
}
