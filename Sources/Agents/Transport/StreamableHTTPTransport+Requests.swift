import AccessControl
import Apps
import Model

/// Runs requests and writes their responses.
extension StreamableHTTPTransport {
    /// The methods that are forwarded to the handler. The broker handles others itself or rejects them.
    private static let forwardedMethods: Set<String> = [
        "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
        "prompts/get", "completion/complete",
    ]

    /// Runs a single request and writes the response.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ parsed: ParsedRequest,
        for httpRequest: MCPHTTPRequest,
        of principal: Principal,
        to writer: inout Writer
    ) async throws {
        if let response = await localResponse(to: parsed, of: principal) {
            return try await writer.write(response.acceptable(to: httpRequest.headers))
        }
        if let mismatch = await headerMismatch(of: parsed, in: httpRequest.headers, for: principal) {
            return try await writer.write(MCPHTTPResponse(400, mismatch, to: parsed.id))
        }
        let inFlight = InFlightRequest(httpRequest, keepAliveTimer)
        var connected = inFlight.acceptsEvents ? await connect(parsed, to: inFlight) : parsed
        let call = await sessions.begin(parsed, inFlight, of: principal, at: endpoint)
        connected.request.agent = call?.program
        let end: Result<Void, any Error>
        do {
            let opening = Self.opening(of: parsed, in: httpRequest.headers)
            try await inFlight.run(to: &writer, opening: opening) { [connected] in
                await answer(connected, of: principal)
            }
            end = .success(())
        } catch { end = .failure(error) }
        await sessions.end(parsed, call)
        try end.get()
    }

    /// Runs the requests of a batch concurrently. The responses are in the order of the requests.
    func run<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ batch: [Result<ParsedRequest, RejectedMessage>],
        for httpRequest: MCPHTTPRequest,
        of principal: Principal,
        to writer: inout Writer
    ) async throws {
        try await InFlightRequest(httpRequest, keepAliveTimer).run(to: &writer) {
            let answers = await withTaskGroup(of: (Int, JSON).self) { group in
                for (index, parsed) in batch.enumerated() {
                    group.addTask { (index, await answerInBatch(parsed, of: principal)) }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            return (.array(answers.sorted { $0.0 < $1.0 }.map(\.1)), 200)
        }
    }

    /// Returns an error if the headers of a tool call contradict its arguments: proxies may have trusted the headers.
    private func headerMismatch(of parsed: ParsedRequest, in headers: MCPRequestHeaders, for principal: Principal)
        async -> RPCError?
    {
        guard parsed.mode == .stateless, !headers.isFromStdio, let tool = parsed.request.tool else { return nil }
        return await handler.parameterHeaders(of: tool, for: principal)
            .mismatch(with: parsed.request.params["arguments"]) { headers.parameters[$0] ?? [] }
    }

    /// Returns a copy of the request that can reach its client on the response stream.
    private func connect(_ parsed: ParsedRequest, to inFlight: InFlightRequest) async -> ParsedRequest {
        let sessionLevel =
            if let session = parsed.session { await sessions.logLevel(of: session) } else { LogLevel?.none }
        // Before 2026-07-28 the handler decides if the client has set no level.
        let level = parsed.mode == .stateless ? parsed.meta.logLevel.flatMap(LogLevel.init) : sessionLevel ?? .debug
        var connected = parsed
        if let notify = inFlight.notifier(progressToken: parsed.meta.progressToken, level: level) {
            connected.request.notify = notify
            connected.request.logLevel = level?.name
        }
        if let clientRequester = ClientRequester(
            for: parsed,
            in: sessions,
            during: inFlight,
            hasLogLevel: sessionLevel != nil
        ) {
            connected.request.clientRequester = clientRequester
            connected.request.capabilities = clientRequester.capabilities.json
        }
        return connected
    }

    /// Returns the beginning of a response stream that lets a client survive a broken connection. That is an event
    /// with which it resumes, or a comment in a version that cannot resume. Python's SDK 2.3 gives up without a
    /// response head.
    private static func opening(of parsed: ParsedRequest, in headers: MCPRequestHeaders) -> [UInt8]? {
        guard parsed.request.method == "tools/call", !headers.isFromStdio else { return nil }
        switch parsed.mode {
        case .stateless: return SSEEncoder.comment
        // Clients of an earlier version treat an event without data as a broken message.
        case .session(.v2025_11_25): return parsed.session == nil ? nil : CallResumption.event(for: parsed.id)
        case .session: return nil
        }
    }

    private func answerInBatch(_ parsed: Result<ParsedRequest, RejectedMessage>, of principal: Principal) async -> JSON
    {
        let request: ParsedRequest
        switch parsed {
        case .failure(let rejected): return rejected.error.response(to: rejected.id)
        case .success(let parsed): request = parsed
        }
        do throws(RPCError) {
            // MCP 2025-03-26, lifecycle: later messages depend on its result.
            if request.request.method == "initialize" {
                throw .invalidRequest("initialize must not be part of a batch")
            }
            guard let result = try await localResult(of: request, for: principal) else {
                return await answer(request, of: principal).0
            }
            return RPCMessage.response(id: request.id, .success(.object(result))).json
        } catch {
            return error.response(to: request.id)
        }
    }

    private func answer(_ parsed: ParsedRequest, of principal: Principal) async -> (JSON, status: Int) {
        let request = parsed.request
        let adapter = ResultAdapter(mode: parsed.mode, method: request.method)
        do throws(RPCError) {
            guard Self.forwardedMethods.contains(request.method) else { throw .methodNotFound(request.method) }
            let result =
                if let artifact = try await artifacts?.read(request, of: principal) { artifact } else {
                    try await handlerResult(of: request, for: principal)
                }
            let info = parsed.mode == .stateless ? await handler.description(for: principal).info : [:]
            let adapted = try adapter.adapt(result, serverInfo: info)
            return (RPCMessage.response(id: parsed.id, .success(.object(adapted))).json, 200)
        } catch {
            let error = adapter.adapt(error)
            return (error.response(to: parsed.id), parsed.mode.status(of: error))
        }
    }

    /// Returns the handler's result. A list that the handler does not have is empty. Several clients ask for each kind
    /// of list, and drop a server that answers with an error (DeusData/codebase-memory-mcp#1015).
    private func handlerResult(of request: MCPRequest, for principal: Principal) async throws(RPCError) -> JSONObject {
        do throws(RPCError) { return try await handler.answer(request, of: principal) } catch {
            guard error.code == RPCError.methodNotFound("").code, let member = MCPRequest.listMembers[request.method]
            else {
                throw error
            }
            return [member: []]
        }
    }
}
