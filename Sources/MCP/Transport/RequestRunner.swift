import JSON

/// Asking the server, and bringing its answers back.
extension StreamableHTTPTransport {
    /// What a server is asked; everything else the door answers itself, or nobody does.
    private static let forwarded: Set<String> = [
        "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
        "prompts/get", "completion/complete",
    ]

    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ inquiries: [Result<ParsedRequest, RejectedMessage>],
        _ isBatch: Bool,
        for call: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        let running = InFlightRequest(heartbeat)
        if !isBatch, case .success(let inquiry)? = inquiries.first {
            let takesEvents = call.headers.takesEvents
            let wish = if let session = inquiry.session { await sessions.logLevel(of: session) } else { LogLevel?.none }
            let level = Self.logLevel(for: inquiry, wish)
            let notify = takesEvents ? Self.notifier(for: inquiry, level, running) : nil
            let wayBack = takesEvents ? wayBack(of: inquiry, running, hasWishes: wish != nil) : nil
            if let session = inquiry.session {
                let tell: (@Sendable (RPCMessage) -> Bool)? = takesEvents ? { @Sendable in running.tell($0) } : nil
                await sessions.enter(inquiry.id, of: session, tell: tell) { running.ending.end(with: .cancelled) }
            }
            let end: Result<Void, any Error>
            do {
                try await running.run(for: call, to: &writer, opening: Self.opening(of: inquiry, call)) {
                    await answer(inquiry, of: caller, level, wayBack, notify)
                }
                end = .success(())
            } catch { end = .failure(error) }
            if let session = inquiry.session { await sessions.leave(inquiry.id, of: session) }
            return try end.get()
        }
        try await running.run(for: call, to: &writer) { await answer(inquiries, of: caller) }
    }

    /// What the stream of an answer begins with, for a client that comes back when the stream breaks.
    private static func opening(of inquiry: ParsedRequest, _ call: MCPHTTPRequest) -> [UInt8]? {
        // A client of an earlier revision takes an event without data for a broken message.
        guard case .handshake(.november2025) = inquiry.era, inquiry.session != nil, inquiry.method == "tools/call",
            !call.headers.isFromLines
        else { return nil }
        return CallResumption.event(for: inquiry.id)
    }

    /// All at once; the answers come in the order of the requests.
    private func answer(
        _ inquiries: [Result<ParsedRequest, RejectedMessage>],
        of caller: AgentCaller
    ) async -> (JSON, status: Int) {
        let answers = await withTaskGroup(of: (Int, JSON).self) { group in
            for (place, inquiry) in inquiries.enumerated() {
                group.addTask {
                    switch inquiry {
                    case .failure(let refused): (place, refused.error.answer(to: refused.id))
                    case .success(let inquiry): (place, await answerInBatch(inquiry, of: caller))
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        return (.array(answers.sorted { $0.0 < $1.0 }.map(\.1)), 200)
    }

    private func answerInBatch(_ inquiry: ParsedRequest, of caller: AgentCaller) async -> JSON {
        do throws(RPCError) {
            // MCP 2025-03-26, lifecycle: what follows it needs what it gives.
            if inquiry.method == "initialize" { throw .invalidRequest("initialize must not be part of a batch") }
            guard let result = try await answerHere(inquiry, caller) else {
                return await answer(inquiry, of: caller, nil, nil, nil).0
            }
            return RPCMessage.response(id: inquiry.id, .success(.object(result))).json
        } catch {
            return error.answer(to: inquiry.id)
        }
    }

    private func answer(
        _ inquiry: ParsedRequest,
        of caller: AgentCaller,
        _ level: LogLevel?,
        _ wayBack: ClientRequester?,
        _ notify: (@Sendable (RPCNotification) -> Void)?
    ) async -> (JSON, status: Int) {
        let shape = ResultAdapter(era: inquiry.era, method: inquiry.method)
        do throws(RPCError) {
            guard Self.forwarded.contains(inquiry.method) else { throw .unknownMethod(inquiry.method) }
            let request = MCPRequest(
                inquiry.method,
                inquiry.params,
                capabilities: inquiry.era == .stateless
                    ? inquiry.meta.capabilities?.object ?? [:] : wayBack?.faculties.capabilities ?? [:],
                logLevel: notify == nil ? nil : level?.name,
                wayBack: wayBack,
                mayAskAgain: inquiry.era == .stateless,
                notify: notify
            )
            let result =
                if let artifact = try await artifact(request, of: caller) { artifact } else {
                    try await server.answer(request, of: caller)
                }
            let info = inquiry.era == .stateless ? await server.description(for: caller).info : [:]
            let shaped = try shape.shape(result, server: info)
            return (RPCMessage.response(id: inquiry.id, .success(.object(shaped))).json, 200)
        } catch {
            let error = shape.shape(error)
            return (error.answer(to: inquiry.id), inquiry.era.status(of: error))
        }
    }

    /// From which level on the caller wants log messages; nil for none. Before 2026-07-28 the server decides which it sends
    /// where the client has not.
    private static func logLevel(for inquiry: ParsedRequest, _ wish: LogLevel?) -> LogLevel? {
        inquiry.era == .stateless ? inquiry.meta.logLevel.flatMap(LogLevel.init) : wish ?? .debug
    }

    /// Passes on what the caller asked to be told; nil where that is nothing.
    private static func notifier(
        for inquiry: ParsedRequest,
        _ level: LogLevel?,
        _ running: InFlightRequest
    ) -> (@Sendable (RPCNotification) -> Void)? {
        let token = inquiry.meta.progressToken
        guard token != nil || level != nil else { return nil }
        return { notification in
            switch notification.method {
            case "notifications/progress":
                guard let token else { return }
                var params = notification.params ?? [:]
                params["progressToken"] = token.json
                running.tell(.notification(RPCNotification(method: notification.method, params: params)))
            case "notifications/message":
                let said = notification.params?["level"]?.string.flatMap(LogLevel.init) ?? .info
                if let level, said >= level { running.tell(.notification(notification)) }
            default:
                break
            }
        }
    }
}
