import JSON

/// Parses HTTP requests and handles those that need no server.
extension StreamableHTTPTransport {
    /// The maximum number of messages in a batch.
    private static let batchLimit = 64
    private static let allow = MCPHTTPResponse.Header(name: "Allow", value: "POST, GET, DELETE")

    /// Returns the action for an HTTP request.
    func disposition(of httpRequest: MCPHTTPRequest, from caller: AgentCaller) async -> RequestDisposition {
        do throws(HTTPRejection) {
            switch httpRequest.method {
            case .post: return try await postDisposition(of: httpRequest, from: caller)
            case .get: return try await streamDisposition(of: httpRequest, from: caller)
            case .delete:
                if let context = try sessionContext(of: httpRequest, from: caller) {
                    await sessions.end(context.session)
                }
                return .reply(MCPHTTPResponse(204))
            }
        } catch {
            return .reply(error.response)
        }
    }

    private func postDisposition(of httpRequest: MCPHTTPRequest, from caller: AgentCaller) async throws(HTTPRejection)
        -> RequestDisposition
    {
        guard httpRequest.headers.acceptsJSON else {
            throw Self.notAccepted(["application/json", "text/event-stream"])
        }
        let json: JSON
        do { json = try await JSON.parse(httpRequest.body) } catch {
            throw HTTPRejection(400, .parseError(error.description))
        }
        if case .array(let messages) = json {
            return try await batchDisposition(of: messages, in: httpRequest, from: caller)
        }
        switch Self.read(json) {
        case .failure(let rejected): throw HTTPRejection(400, rejected.error, to: rejected.id)
        case .success(.request(let request)):
            return try await requestDisposition(of: request, in: httpRequest, from: caller)
        case .success(.notification(let notification)):
            let context = try sessionContext(of: httpRequest, from: caller)
            try validateVersion(of: httpRequest, negotiated: context?.version)
            if let context { await handle(notification, in: context.session) }
            return .reply(.accepted)
        case .success(.response(let id, let outcome)):
            if let context = try sessionContext(of: httpRequest, from: caller), let id {
                await sessions.completeServerRequest(id, of: context.session, with: outcome)
            }
            return .reply(.accepted)
        }
    }

    private func requestDisposition(of request: RPCRequest, in httpRequest: MCPHTTPRequest, from caller: AgentCaller)
        async throws(HTTPRejection)
        -> RequestDisposition
    {
        var params = request.params ?? [:]
        let meta = RequestMeta(from: &params)
        let isStateless = meta.protocolVersion != nil
        // A stateless request has no session.
        let context = isStateless ? nil : try sessionContext(of: httpRequest, from: caller)
        let mode: ProtocolMode
        do {
            mode = try ProtocolMode(of: request, meta: meta, headers: httpRequest.headers, negotiated: context?.version)
        } catch {
            throw HTTPRejection(400, error, to: request.id)
        }
        let parsed = ParsedRequest(
            id: request.id,
            method: request.method,
            params: params,
            meta: meta,
            mode: mode,
            session: mode == .stateless ? nil : context?.session,
            capabilities: mode == .stateless ? [] : context?.capabilities ?? []
        )
        if let mismatch = await headerMismatch(of: parsed, in: httpRequest, from: caller) {
            throw HTTPRejection(400, mismatch, to: request.id)
        }
        if request.method == "subscriptions/listen", mode == .stateless, !httpRequest.headers.acceptsEvents {
            throw Self.notAccepted(["text/event-stream"], to: request.id)
        }
        do throws(RPCError) {
            return try await localDisposition(of: parsed, from: caller) ?? .run([.success(parsed)], isBatch: false)
        } catch {
            throw HTTPRejection(mode.status(of: error), error, to: request.id)
        }
    }

    /// Returns an error if the headers of a tool call contradict its arguments: proxies may have trusted the headers.
    private func headerMismatch(of parsed: ParsedRequest, in httpRequest: MCPHTTPRequest, from caller: AgentCaller)
        async -> RPCError?
    {
        guard parsed.mode == .stateless, parsed.method == "tools/call", !httpRequest.headers.isFromStdio,
            let tool = parsed.params["name"]?.string
        else {
            return nil
        }
        return await server.parameterHeaders(of: tool, for: caller)
            .mismatch(with: parsed.params["arguments"]) { httpRequest.headers.parameters[$0] ?? [] }
    }

    /// Returns nil if the server has to handle the request.
    private func localDisposition(of parsed: ParsedRequest, from caller: AgentCaller) async throws(RPCError)
        -> RequestDisposition?
    {
        var headers: [MCPHTTPResponse.Header] = []
        let result: JSONObject
        switch (parsed.method, parsed.mode) {
        case ("initialize", .session):
            let version: ProtocolVersion
            (result, version) = try InitializeResponse.initializeResult(
                parsed.params,
                await server.description(for: caller)
            )
            let id = sessions.key.makeID(
                for: version,
                ClientCapabilities(parsed.params["capabilities"]?.object ?? [:])
            )
            await sessions.begin(session(id, of: caller))
            headers.append(MCPHTTPResponse.Header(name: "Mcp-Session-Id", value: id))
        case ("subscriptions/listen", .stateless):
            return .subscribe(
                try SubscriptionRequest(parsed.params, id: parsed.id, await server.description(for: caller))
            )
        default:
            guard let answer = try await answerLocally(parsed, caller) else { return nil }
            result = answer
        }
        let response = RPCMessage.response(id: parsed.id, .success(.object(result)))
        return .reply(MCPHTTPResponse(json: response.json, headers: headers))
    }

    /// Handles requests that the transport answers itself, alone or in a batch. Returns nil for any other request.
    func answerLocally(_ parsed: ParsedRequest, _ caller: AgentCaller) async throws(RPCError) -> JSONObject? {
        switch (parsed.method, parsed.mode) {
        case ("server/discover", .stateless):
            let description = await server.description(for: caller)
            let adapter = ResultAdapter(mode: parsed.mode, method: parsed.method)
            return try adapter.adapt(InitializeResponse.discoverResult(description), server: description.info)
        case ("ping", .session):
            return [:]
        case ("logging/setLevel", .session):
            guard await server.description(for: caller).has("logging") else { return nil }
            guard let level = parsed.params["level"]?.string.flatMap(LogLevel.init) else {
                throw .invalidParams("level must be one of MCP's log levels")
            }
            if let session = parsed.session { await sessions.setLogLevel(level, of: session) }
            try await forwardToServer(parsed, from: caller)
            return [:]
        case ("resources/subscribe", .session), ("resources/unsubscribe", .session):
            guard await server.description(for: caller).has("resources", "subscribe") else { return nil }
            guard let uri = parsed.params["uri"]?.string else { throw .invalidParams("uri must be a string") }
            guard let session = parsed.session else {
                throw .invalidRequest("a subscription belongs to a session: send its Mcp-Session-Id")
            }
            if parsed.method == "resources/subscribe" {
                try await forwardToServer(parsed, from: caller)
                try await sessions.subscribe(uri, of: session)
            } else {
                await sessions.unsubscribe(uri, of: session)
            }
            return [:]
        default:
            return nil
        }
    }

    /// Forwards a log level or a subscription to servers that handle them, such as apps. Other servers reject the
    /// method, which is ignored.
    private func forwardToServer(_ parsed: ParsedRequest, from caller: AgentCaller) async throws(RPCError) {
        do throws(RPCError) {
            let request = MCPRequest(
                parsed.method,
                parsed.params,
                clientRequester: clientRequester(for: parsed, during: nil, hasLogLevel: true)
            )
            _ = try await server.answer(request, of: caller)
        } catch  where error.code == RPCError.methodNotFound("").code {}
    }

    private func batchDisposition(of messages: [JSON], in httpRequest: MCPHTTPRequest, from caller: AgentCaller)
        async throws(HTTPRejection) -> RequestDisposition
    {
        let context = try sessionContext(of: httpRequest, from: caller)
        let version = try validateVersion(of: httpRequest, negotiated: context?.version)
        guard version < .v2025_06_18 else {
            throw HTTPRejection(400, .invalidRequest("\(version.rawValue) has no batches: send one message at a time"))
        }
        guard (1...Self.batchLimit).contains(messages.count) else {
            throw HTTPRejection(400, .invalidRequest("a batch has 1 to \(Self.batchLimit) messages"))
        }
        var parsedRequests: [Result<ParsedRequest, RejectedMessage>] = []
        for message in messages {
            switch Self.read(message) {
            case .failure(let rejected): parsedRequests.append(.failure(rejected))
            case .success(.request(let request)):
                var params = request.params ?? [:]
                let meta = RequestMeta(from: &params)
                parsedRequests.append(
                    .success(
                        ParsedRequest(
                            id: request.id,
                            method: request.method,
                            params: params,
                            meta: meta,
                            mode: .session(version),
                            session: context?.session
                        )
                    )
                )
            case .success(.notification(let notification)):
                if let context { await handle(notification, in: context.session) }
            case .success(.response(let id, let outcome)):
                if let context, let id { await sessions.completeServerRequest(id, of: context.session, with: outcome) }
            }
        }
        return parsedRequests.isEmpty ? .reply(.accepted) : .run(parsedRequests, isBatch: true)
    }

    private func streamDisposition(of httpRequest: MCPHTTPRequest, from caller: AgentCaller) async throws(HTTPRejection)
        -> RequestDisposition
    {
        guard httpRequest.headers.acceptsEvents else { throw Self.notAccepted(["text/event-stream"]) }
        let context = try sessionContext(of: httpRequest, from: caller)
        // MCP 2026-07-28 has no GET streams; 405 tells the client so.
        guard !(try validateVersion(of: httpRequest, negotiated: context?.version)).isStateless else {
            throw HTTPRejection(405, headers: [Self.allow])
        }
        guard let context else { return .stream(nil, isResumed: false) }
        if let answer = httpRequest.headers.lastEvent.first.flatMap(CallResumption.response) {
            return .reply(MCPHTTPResponse(events: SSEEncoder.message(answer)))
        }
        return .stream(context.session, isResumed: await sessions.markResumed(context.session))
    }

    /// Returns the session of a request; nil if the request names none.
    ///
    /// - Throws: 404 for a session ID that this broker did not sign, so that the client starts a new session. A
    ///   signed ID is never rejected.
    private func sessionContext(
        of httpRequest: MCPHTTPRequest,
        from caller: AgentCaller
    ) throws(HTTPRejection) -> (
        session: SessionStore.Session, version: ProtocolVersion, capabilities: ClientCapabilities
    )? {
        guard let id = httpRequest.headers.session.first else { return nil }
        guard let claims = sessions.key.claims(of: id) else {
            throw HTTPRejection(
                404,
                .invalidRequest("unknown session ID: start a new session with initialize")
            )
        }
        return (session(id, of: caller), claims.version, claims.capabilities)
    }

    @discardableResult
    /// Rejects a request with an unknown protocol version.
    private func validateVersion(of httpRequest: MCPHTTPRequest, negotiated: ProtocolVersion?) throws(HTTPRejection)
        -> ProtocolVersion
    {
        do { return try ProtocolMode.version(in: httpRequest.headers, negotiated: negotiated) } catch {
            throw HTTPRejection(400, error)
        }
    }

    private func handle(_ notification: RPCNotification, in session: SessionStore.Session) async {
        guard notification.method == "notifications/cancelled",
            let id = notification.params?["requestId"].flatMap(RPCID.init)
        else { return }
        await sessions.cancel(id, of: session)
    }

    /// A 406 response that lists the available types (RFC 9110, section 15.5.7).
    private static func notAccepted(_ types: [String], to id: RPCID? = nil) -> HTTPRejection {
        HTTPRejection(406, .invalidRequest("send the header Accept: \(types.joined(separator: ", "))"), to: id)
    }

    private static func read(_ json: JSON) -> Result<RPCMessage, RejectedMessage> {
        do throws(RPCError) { return .success(try RPCMessage(json)) } catch {
            return .failure(RejectedMessage(id: json["id"].flatMap(RPCID.init), error: error))
        }
    }
}
