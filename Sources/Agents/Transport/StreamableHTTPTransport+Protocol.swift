import AccessControl
import Apps
import Model

/// The requests of the protocol itself: handshake, `ping`, log levels and subscriptions.
extension StreamableHTTPTransport {
    /// Returns the HTTP response to a single request; nil if the handler has to answer the request.
    func localResponse(to parsed: ParsedRequest, of principal: Principal) async -> MCPHTTPResponse? {
        do throws(RPCError) {
            var headers: [MCPHTTPResponse.Header] = []
            let result: JSONObject
            if case ("initialize", .session) = (parsed.request.method, parsed.mode) {
                let sessionID: String
                (result, sessionID) = try await beginSession(parsed.request.params, of: principal)
                headers.append(MCPHTTPResponse.Header(name: "Mcp-Session-Id", value: sessionID))
            } else {
                guard let answer = try await localResult(of: parsed, for: principal) else { return nil }
                result = answer
            }
            let response = RPCMessage.response(id: parsed.id, .success(.object(result)))
            return MCPHTTPResponse(json: response.json, headers: headers)
        } catch {
            return MCPHTTPResponse(parsed.mode.status(of: error), error, to: parsed.id)
        }
    }

    private func beginSession(_ params: JSONObject, of principal: Principal) async throws(RPCError)
        -> (result: JSONObject, id: String)
    {
        let description = await handler.description(for: principal)
        let (result, version) = try InitializeResultBuilder.initializeResult(params, description)
        let id = sessions.key.makeID(for: version, ClientCapabilities(params["capabilities"]?.object ?? [:]))
        let session = SessionStore.Session(id: id, holder: principal.holder)
        await sessions.begin(session, client: params["clientInfo"], of: principal, at: endpoint)
        return (result, id)
    }

    /// Returns the result of any request but `initialize`, alone or in a batch; nil if the handler has to answer the
    /// request.
    func localResult(of parsed: ParsedRequest, for principal: Principal) async throws(RPCError) -> JSONObject? {
        switch (parsed.request.method, parsed.mode) {
        case ("server/discover", .stateless):
            let description = await handler.description(for: principal)
            let adapter = ResultAdapter(mode: parsed.mode, method: parsed.request.method)
            return try adapter.adapt(InitializeResultBuilder.discoverResult(description), serverInfo: description.info)
        case ("ping", .session): return [:]
        case ("logging/setLevel", .session): return try await setLogLevel(parsed, of: principal)
        case ("resources/subscribe", .session), ("resources/unsubscribe", .session):
            return try await changeSubscription(parsed, of: principal)
        default: return nil
        }
    }

    private func setLogLevel(_ parsed: ParsedRequest, of principal: Principal) async throws(RPCError) -> JSONObject? {
        guard await handler.description(for: principal).has("logging") else { return nil }
        guard let level = parsed.request.params["level"]?.string.flatMap(LogLevel.init) else {
            throw .invalidParams("level must be one of MCP's log levels")
        }
        if let session = parsed.session { await sessions.setLogLevel(level, of: session) }
        try await forwardToHandler(parsed, of: principal)
        return [:]
    }

    private func changeSubscription(_ parsed: ParsedRequest, of principal: Principal) async throws(RPCError)
        -> JSONObject?
    {
        guard await handler.description(for: principal).has("resources", "subscribe") else { return nil }
        guard let uri = parsed.request.params["uri"]?.string else { throw .invalidParams("uri must be a string") }
        guard let session = parsed.session else {
            throw .invalidRequest("a subscription belongs to a session: send its Mcp-Session-Id")
        }
        if parsed.request.method == "resources/subscribe" {
            try await forwardToHandler(parsed, of: principal)
            try await sessions.subscribe(uri, of: session)
        } else {
            await sessions.unsubscribe(uri, of: session)
        }
        return [:]
    }

    /// Forwards a log level or a subscription to handlers that support them, such as those of apps. Others reject the
    /// method, which is ignored.
    private func forwardToHandler(_ parsed: ParsedRequest, of principal: Principal) async throws(RPCError) {
        var request = parsed.request
        request.clientRequester = ClientRequester(for: parsed, in: sessions, during: nil, hasLogLevel: true)
        do throws(RPCError) {
            _ = try await handler.answer(request, of: principal)
        } catch  where error.code == RPCError.methodNotFound("").code {}
    }
}
