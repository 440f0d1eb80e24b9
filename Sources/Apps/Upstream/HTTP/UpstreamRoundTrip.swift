import Model

/// Sends one message to an app in an HTTP request, and reads until its response.
///
/// The response is JSON or an event stream, as the app chooses.
struct UpstreamRoundTrip {
    private var exchange: HTTPExchange
    /// The message's ID; nil for a message without a response.
    private let id: RPCID?
    private let decoder: ServerMessageDecoder
    /// Receives messages before the response: notifications and the app's requests.
    private let onMessage: @Sendable (RPCMessage) -> Void
    private var outcome: Result<JSON, RPCError>?

    /// The parser with the rest of the response, which must be read before the next one.
    var rest: HTTPResponseParser { exchange.parser }

    init(
        _ exchange: HTTPExchange,
        awaiting id: RPCID?,
        decoder: ServerMessageDecoder = ServerMessageDecoder(redactor: TokenRedactor([]), record: { _ in }),
        onMessage: @escaping @Sendable (RPCMessage) -> Void
    ) {
        self.exchange = exchange
        self.id = id
        self.onMessage = onMessage
        self.decoder = decoder
    }

    /// Sends the request and reads until its response.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    mutating func run(by admission: DeliveryAuthorization? = nil) async throws -> UpstreamResponse {
        do {
            try await exchange.send(by: admission?.permission)
            while outcome == nil, let events = try await exchange.next() { try await handle(events) }
            return try await makeResponse()
        } catch let failure as ExchangeError {
            throw failure.appError
        }
    }

    private mutating func handle(_ events: [ServerSentEvent]) async throws {
        // A comment keeps the stream alive without activity of the app; a message is activity.
        for event in events where !event.data.isEmpty {
            guard let messages = try await messages(of: event) else { continue }
            handle(messages)
            exchange.recordActivity()
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
        if outcome == nil {
            let last = try exchange.finish()
            // An event that is cut off is no message.
            try? await handle(last)
        }
        guard let head = exchange.head, let body = exchange.body else { throw AppError.responseLost }
        let isSuccess = (200..<300).contains(head.status)
        let (isEventStream, text) = (body.isEventStream, body.text)
        if !isEventStream, !text.isEmpty {
            do {
                handle(try await decoder.messages(in: text[...]))
            } catch {
                // An error status may come with a text for people; a success must be valid JSON.
                if isSuccess, id != nil { throw error }
            }
        }
        if outcome != nil { for deviation in body.deviations { decoder.record(deviation) } }
        exchange.reservation?.complete()
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
            size: body.size,
            reservation: exchange.reservation,
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
