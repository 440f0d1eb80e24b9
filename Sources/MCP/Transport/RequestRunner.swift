import JSON

/// Runs requests on the server and writes their responses.
extension StreamableHTTPTransport {
    /// The methods that are forwarded to the server. The transport handles others itself or rejects them.
    private static let forwardedMethods: Set<String> = [
        "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
        "prompts/get", "completion/complete",
    ]

    /// Runs one request or a batch, and writes the response.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ parsedRequests: [Result<ParsedRequest, RejectedMessage>],
        isBatch: Bool,
        for httpRequest: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        let inFlight = InFlightRequest(keepAliveTimer)
        if !isBatch, case .success(let parsed)? = parsedRequests.first {
            let acceptsEvents = httpRequest.headers.acceptsEvents
            let requestedLevel =
                if let session = parsed.session { await sessions.logLevel(of: session) } else { LogLevel?.none }
            let level = Self.logLevel(for: parsed, requestedLevel)
            let notify = acceptsEvents ? Self.notifier(for: parsed, level: level, on: inFlight) : nil
            let clientRequester =
                acceptsEvents ? clientRequester(for: parsed, during: inFlight, hasLogLevel: requestedLevel != nil) : nil
            if let session = parsed.session {
                let send: (@Sendable (RPCMessage) -> Bool)? = acceptsEvents ? { @Sendable in inFlight.send($0) } : nil
                await sessions.begin(request: parsed.id, of: session, send: send) {
                    inFlight.completion.end(with: .cancelled)
                }
            }
            let end: Result<Void, any Error>
            do {
                try await inFlight.run(
                    for: httpRequest,
                    to: &writer,
                    opening: Self.opening(of: parsed, in: httpRequest)
                ) {
                    await answer(parsed, of: caller, level: level, clientRequester: clientRequester, notify: notify)
                }
                end = .success(())
            } catch { end = .failure(error) }
            if let session = parsed.session { await sessions.end(request: parsed.id, of: session) }
            return try end.get()
        }
        try await inFlight.run(for: httpRequest, to: &writer) { await answer(parsedRequests, of: caller) }
    }

    /// Returns the first event of a response stream, which lets a client resume after a broken connection.
    private static func opening(of parsed: ParsedRequest, in httpRequest: MCPHTTPRequest) -> [UInt8]? {
        // Clients of an earlier version treat an event without data as a broken message.
        guard case .session(.v2025_11_25) = parsed.mode, parsed.session != nil, parsed.method == "tools/call",
            !httpRequest.headers.isFromStdio
        else { return nil }
        return CallResumption.event(for: parsed.id)
    }

    /// Runs the requests of a batch concurrently. The responses are in the order of the requests.
    private func answer(
        _ parsedRequests: [Result<ParsedRequest, RejectedMessage>],
        of caller: AgentCaller
    ) async -> (JSON, status: Int) {
        let answers = await withTaskGroup(of: (Int, JSON).self) { group in
            for (index, parsed) in parsedRequests.enumerated() {
                group.addTask {
                    switch parsed {
                    case .failure(let rejected): (index, rejected.error.response(to: rejected.id))
                    case .success(let parsed): (index, await answerInBatch(parsed, of: caller))
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        return (.array(answers.sorted { $0.0 < $1.0 }.map(\.1)), 200)
    }

    private func answerInBatch(_ parsed: ParsedRequest, of caller: AgentCaller) async -> JSON {
        do throws(RPCError) {
            // MCP 2025-03-26, lifecycle: later messages depend on its result.
            if parsed.method == "initialize" { throw .invalidRequest("initialize must not be part of a batch") }
            guard let result = try await answerLocally(parsed, caller) else {
                return await answer(parsed, of: caller, level: nil, clientRequester: nil, notify: nil).0
            }
            return RPCMessage.response(id: parsed.id, .success(.object(result))).json
        } catch {
            return error.response(to: parsed.id)
        }
    }

    private func answer(
        _ parsed: ParsedRequest,
        of caller: AgentCaller,
        level: LogLevel?,
        clientRequester: ClientRequester?,
        notify: (@Sendable (RPCNotification) -> Void)?
    ) async -> (JSON, status: Int) {
        let adapter = ResultAdapter(mode: parsed.mode, method: parsed.method)
        do throws(RPCError) {
            guard Self.forwardedMethods.contains(parsed.method) else { throw .methodNotFound(parsed.method) }
            let request = MCPRequest(
                parsed.method,
                parsed.params,
                capabilities: parsed.mode == .stateless
                    ? parsed.meta.capabilities?.object ?? [:] : clientRequester?.capabilities.json ?? [:],
                logLevel: notify == nil ? nil : level?.name,
                clientRequester: clientRequester,
                supportsInputRequired: parsed.mode == .stateless,
                notify: notify
            )
            let result =
                if let artifact = try await artifact(request, of: caller) { artifact } else {
                    try await server.answer(request, of: caller)
                }
            let info = parsed.mode == .stateless ? await server.description(for: caller).info : [:]
            let adapted = try adapter.adapt(result, server: info)
            return (RPCMessage.response(id: parsed.id, .success(.object(adapted))).json, 200)
        } catch {
            let error = adapter.adapt(error)
            return (error.response(to: parsed.id), parsed.mode.status(of: error))
        }
    }

    /// Returns the lowest log level that the caller wants; nil for none.
    ///
    /// Before 2026-07-28 the server decides if the client has set no level.
    private static func logLevel(for parsed: ParsedRequest, _ requestedLevel: LogLevel?) -> LogLevel? {
        parsed.mode == .stateless ? parsed.meta.logLevel.flatMap(LogLevel.init) : requestedLevel ?? .debug
    }

    /// Returns a closure that forwards the notifications that the caller asked for; nil if it asked for none.
    private static func notifier(
        for parsed: ParsedRequest,
        level: LogLevel?,
        on inFlight: InFlightRequest
    ) -> (@Sendable (RPCNotification) -> Void)? {
        let token = parsed.meta.progressToken
        guard token != nil || level != nil else { return nil }
        return { notification in
            switch notification.method {
            case "notifications/progress":
                guard let token else { return }
                var params = notification.params ?? [:]
                params["progressToken"] = token.json
                inFlight.send(.notification(RPCNotification(method: notification.method, params: params)))
            case "notifications/message":
                let messageLevel = notification.params?["level"]?.string.flatMap(LogLevel.init) ?? .info
                if let level, messageLevel >= level { inFlight.send(.notification(notification)) }
            default:
                break
            }
        }
    }
}
