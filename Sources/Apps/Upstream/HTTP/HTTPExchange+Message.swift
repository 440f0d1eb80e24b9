import Model

extension HTTPExchange {
    /// Sends one message to an app, and reads until its response: JSON or an event stream, as the app chooses.
    ///
    /// - Parameters:
    ///   - id: The message's ID; nil for a message without a response.
    ///   - permission: Writes the last bytes if the message is permitted.
    ///   - decoder: Decodes the messages of the app.
    ///   - onMessage: Receives messages before the response: notifications and the app's requests.
    /// - Returns: The response.
    /// - Throws: `AppError`, `CancellationError`.
    mutating func response(
        to id: RPCID?,
        by permission: AppConnection.Permission? = nil,
        decoder: ServerMessageDecoder,
        onMessage: (RPCMessage) -> Void
    ) async throws -> UpstreamResponse {
        var outcome: Result<JSON, RPCError>?
        func handle(_ messages: [RPCMessage]) {
            for message in messages {
                guard case .response(let answered, let result) = message else {
                    onMessage(message)
                    continue
                }
                // A response without an ID answers an unreadable request, which is the only one on this stream. The first
                // of two responses counts.
                if id != nil, outcome == nil, answered == id || answered == nil { outcome = result }
            }
        }
        func handle(_ events: [ServerSentEvent]) async throws {
            // A comment keeps the stream alive without activity of the app; a message is activity.
            for event in events where !event.data.isEmpty {
                guard let messages = try await decoder.messages(of: event) else { continue }
                handle(messages)
                recordActivity()
            }
        }
        do {
            try await send(by: permission)
            while outcome == nil, let events = try await next() { try await handle(events) }
            if outcome == nil {
                let last = try finish()
                // An event that is cut off is no message.
                try? await handle(last)
            }
            guard let head, let body else { throw AppError.responseLost }
            if !body.isEventStream, !body.text.isEmpty {
                do { handle(try await decoder.messages(in: body.text[...])) } catch {
                    // An error status may come with a text for people; a success must be valid JSON.
                    if head.isSuccess, id != nil { throw error }
                }
            }
            if outcome != nil { for deviation in body.deviations { decoder.record(deviation) } }
            reservation?.complete()
            return try response(head, body, outcome, isRequest: id != nil, decoder.redactor)
        } catch let failure as ExchangeError {
            throw failure.appError
        }
    }

    /// - Throws: `AppError` for a request without an outcome that the caller could use.
    private func response(
        _ head: HTTPResponseHead,
        _ body: ResponseBody,
        _ outcome: Result<JSON, RPCError>?,
        isRequest: Bool,
        _ redactor: TokenRedactor
    ) throws(AppError) -> UpstreamResponse {
        let isUnanswered = isRequest && outcome == nil
        if isUnanswered, head.isSuccess {
            guard !body.isEventStream else { throw .responseLost }
            throw .invalidResponse("status \(head.status) and no answer in the body")
        }
        let refusal = isUnanswered && head.status >= 400 ? Self.refusal(with: head, body.text, redactor) : nil
        if (500..<600).contains(head.status), let refusal {
            throw .invalidResponse("status \(head.status)\(refusal)")
        }
        return UpstreamResponse(
            status: head.status,
            sessionID: head["mcp-session-id"].flatMap { HeaderEncoding.isVisibleASCII($0) ? $0 : nil },
            outcome: outcome,
            size: body.size,
            reservation: reservation,
            refusal: refusal,
            location: head["location"].map(redactor.redact)
        )
    }

    /// Returns the server's own text for an error status, which is the only available detail, and `Retry-After` (RFC
    /// 9110, section 10.2.3).
    private static func refusal(with head: HTTPResponseHead, _ body: [UInt8], _ redactor: TokenRedactor) -> String {
        let said = String(decoding: body.prefix(8_192), as: UTF8.self)
        let text = SanitizedText(redactor.redact(said), limit: 200)
        let pause = SanitizedText(head["retry-after"] ?? "", limit: 40)
        let unit = pause.text.allSatisfy(\.isNumber) ? " s" : ""
        return (text.isEmpty ? "" : ", \"\(text)\"") + (pause.isEmpty ? "" : ", Retry-After: \(pause)\(unit)")
    }
}

extension ServerMessageDecoder {
    /// Returns nil for an event that is no message of MCP, such as `ping`, or a text without JSON.
    fileprivate func messages(of event: ServerSentEvent) async throws(AppError) -> [RPCMessage]? {
        do { return try await messages(in: event.data[...]) } catch {
            guard event.name == "message" else { return nil }
            guard !Self.isMessage(event.data) else { throw error }
            record(.foreignText)
            return nil
        }
    }
}

extension HTTPResponseHead {
    fileprivate var isSuccess: Bool { (200..<300).contains(status) }
}
