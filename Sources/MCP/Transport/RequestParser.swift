import JSON

/// Reading what came in, and answering at once what needs no server.
extension StreamableHTTPTransport {
    /// Messages that one batch may have.
    private static let batchLimit = 64
    private static let allow = MCPHTTPResponse.Header(name: "Allow", value: "POST, GET, DELETE")

    func plan(for call: MCPHTTPRequest, of caller: AgentCaller) async -> RequestDisposition {
        do throws(HTTPRejection) {
            switch call.method {
            case .post: return try await planPost(call, caller)
            case .get: return try await planStream(call, caller)
            case .delete:
                if let known = try known(call, caller) { await sessions.end(known.session) }
                return .reply(MCPHTTPResponse(204))
            }
        } catch {
            return .reply(error.reply)
        }
    }

    private func planPost(_ call: MCPHTTPRequest, _ caller: AgentCaller) async throws(HTTPRejection)
        -> RequestDisposition
    {
        guard call.headers.takesJSON else { throw Self.notAccepted(["application/json", "text/event-stream"]) }
        let json: JSON
        do { json = try await JSON.parse(call.body) } catch { throw HTTPRejection(400, .parse(error.description)) }
        if case .array(let messages) = json { return try await planBatch(messages, call, caller) }
        switch Self.read(json) {
        case .failure(let refused): throw HTTPRejection(400, refused.error, to: refused.id)
        case .success(.request(let request)): return try await plan(request, call, caller)
        case .success(.notification(let notification)):
            let known = try known(call, caller)
            try checkRevision(call, known?.agreed)
            if let known { await take(notification, known.session) }
            return .reply(.accepted)
        case .success(.response(let id, let outcome)):
            if let known = try known(call, caller), let id { await sessions.settle(id, of: known.session, outcome) }
            return .reply(.accepted)
        }
    }

    private func plan(_ request: RPCRequest, _ call: MCPHTTPRequest, _ caller: AgentCaller) async throws(HTTPRejection)
        -> RequestDisposition
    {
        var params = request.params ?? [:]
        let meta = RequestMeta(from: &params)
        let isModern = meta.revision != nil
        // A session means nothing to a request that says everything itself.
        let known = isModern ? nil : try known(call, caller)
        let era: ProtocolMode
        do { era = try ProtocolMode(of: request, meta, call.headers, agreed: known?.agreed) } catch {
            throw HTTPRejection(400, error, to: request.id)
        }
        let inquiry = ParsedRequest(
            id: request.id,
            method: request.method,
            params: params,
            meta: meta,
            era: era,
            session: era == .stateless ? nil : known?.session,
            faculties: era == .stateless ? [] : known?.faculties ?? []
        )
        if let mismatch = await mismatch(inquiry, call, caller) { throw HTTPRejection(400, mismatch, to: request.id) }
        if request.method == "subscriptions/listen", era == .stateless, !call.headers.takesEvents {
            throw Self.notAccepted(["text/event-stream"], to: request.id)
        }
        do throws(RPCError) {
            return try await planLocal(inquiry, caller) ?? .run([.success(inquiry)], isBatch: false)
        } catch {
            throw HTTPRejection(era.status(of: error), error, to: request.id)
        }
    }

    /// Whether the headers for a tool's arguments contradict them: whoever stands between could have been deceived.
    private func mismatch(_ inquiry: ParsedRequest, _ call: MCPHTTPRequest, _ caller: AgentCaller) async -> RPCError? {
        guard inquiry.era == .stateless, inquiry.method == "tools/call", !call.headers.isFromLines,
            let tool = inquiry.params["name"]?.string
        else {
            return nil
        }
        return await server.parameterHeaders(of: tool, for: caller)
            .mismatch(with: inquiry.params["arguments"]) { call.headers.parameters[$0] ?? [] }
    }

    /// Nil for what the server is asked.
    private func planLocal(_ inquiry: ParsedRequest, _ caller: AgentCaller) async throws(RPCError)
        -> RequestDisposition?
    {
        var headers: [MCPHTTPResponse.Header] = []
        let result: JSONObject
        switch (inquiry.method, inquiry.era) {
        case ("initialize", .handshake):
            let revision: ProtocolVersion
            (result, revision) = try InitializeResponse.handshake(inquiry.params, await server.description(for: caller))
            let id = sessions.key.makeID(
                for: revision,
                ClientCapabilities(inquiry.params["capabilities"]?.object ?? [:])
            )
            await sessions.begin(session(id, of: caller))
            headers.append(MCPHTTPResponse.Header(name: "Mcp-Session-Id", value: id))
        case ("subscriptions/listen", .stateless):
            return .listen(
                try SubscriptionRequest(inquiry.params, id: inquiry.id, await server.description(for: caller))
            )
        default:
            guard let answer = try await answerHere(inquiry, caller) else { return nil }
            result = answer
        }
        let response = RPCMessage.response(id: inquiry.id, .success(.object(result)))
        return .reply(MCPHTTPResponse(json: response.json, headers: headers))
    }

    /// What the door answers by itself, alone or in a batch; nil for anything else.
    func answerHere(_ inquiry: ParsedRequest, _ caller: AgentCaller) async throws(RPCError) -> JSONObject? {
        switch (inquiry.method, inquiry.era) {
        case ("server/discover", .stateless):
            let description = await server.description(for: caller)
            let shape = ResultAdapter(era: inquiry.era, method: inquiry.method)
            return try shape.shape(InitializeResponse.discovery(description), server: description.info)
        case ("ping", .handshake):
            return [:]
        case ("logging/setLevel", .handshake):
            guard await server.description(for: caller).has("logging") else { return nil }
            guard let level = inquiry.params["level"]?.string.flatMap(LogLevel.init) else {
                throw .invalidParams("level must be one of MCP's log levels, a text")
            }
            if let session = inquiry.session { await sessions.setLogLevel(level, of: session) }
            try await pass(inquiry, caller)
            return [:]
        case ("resources/subscribe", .handshake), ("resources/unsubscribe", .handshake):
            guard await server.description(for: caller).has("resources", "subscribe") else { return nil }
            guard let uri = inquiry.params["uri"]?.string else { throw .invalidParams("uri must be a text") }
            guard let session = inquiry.session else {
                throw .invalidRequest("a subscription belongs to a session: send its Mcp-Session-Id")
            }
            if inquiry.method == "resources/subscribe" {
                try await pass(inquiry, caller)
                try await sessions.subscribe(uri, of: session)
            } else {
                await sessions.unsubscribe(uri, of: session)
            }
            return [:]
        default:
            return nil
        }
    }

    /// Lets a server know that has something to say about it, or its own way to hear of such things: an app.
    private func pass(_ inquiry: ParsedRequest, _ caller: AgentCaller) async throws(RPCError) {
        do throws(RPCError) {
            let request = MCPRequest(
                inquiry.method,
                inquiry.params,
                wayBack: wayBack(of: inquiry, nil, hasWishes: true)
            )
            _ = try await server.answer(request, of: caller)
        } catch  where error.code == RPCError.unknownMethod("").code {}
    }

    private func planBatch(_ messages: [JSON], _ call: MCPHTTPRequest, _ caller: AgentCaller)
        async throws(HTTPRejection) -> RequestDisposition
    {
        let known = try known(call, caller)
        let revision = try checkRevision(call, known?.agreed)
        guard revision < .june2025 else {
            throw HTTPRejection(400, .invalidRequest("\(revision.rawValue) has no batches: send one message at a time"))
        }
        guard (1...Self.batchLimit).contains(messages.count) else {
            throw HTTPRejection(400, .invalidRequest("a batch has 1 to \(Self.batchLimit) messages"))
        }
        var inquiries: [Result<ParsedRequest, RejectedMessage>] = []
        for message in messages {
            switch Self.read(message) {
            case .failure(let refused): inquiries.append(.failure(refused))
            case .success(.request(let request)):
                var params = request.params ?? [:]
                let meta = RequestMeta(from: &params)
                inquiries.append(
                    .success(
                        ParsedRequest(
                            id: request.id,
                            method: request.method,
                            params: params,
                            meta: meta,
                            era: .handshake(revision),
                            session: known?.session
                        )
                    )
                )
            case .success(.notification(let notification)):
                if let known { await take(notification, known.session) }
            case .success(.response(let id, let outcome)):
                if let known, let id { await sessions.settle(id, of: known.session, outcome) }
            }
        }
        return inquiries.isEmpty ? .reply(.accepted) : .run(inquiries, isBatch: true)
    }

    private func planStream(_ call: MCPHTTPRequest, _ caller: AgentCaller) async throws(HTTPRejection)
        -> RequestDisposition
    {
        guard call.headers.takesEvents else { throw Self.notAccepted(["text/event-stream"]) }
        let known = try known(call, caller)
        // There are no streams by GET in 2026-07-28; a client that tries is told so by the method.
        guard !(try checkRevision(call, known?.agreed)).isStateless else {
            throw HTTPRejection(405, headers: [Self.allow])
        }
        guard let known else { return .follow(nil, isResumed: false) }
        if let answer = call.headers.lastEvent.first.flatMap(CallResumption.answer) {
            return .reply(MCPHTTPResponse(events: SSEEncoder.message(answer)))
        }
        return .follow(known.session, isResumed: await sessions.catchUp(known.session))
    }

    /// The session that the call belongs to; nil where it names none.
    ///
    /// - Throws: 404 for an id that is not signed by us, upon which a client begins a new session; never for one that is.
    private func known(
        _ call: MCPHTTPRequest,
        _ caller: AgentCaller
    ) throws(HTTPRejection) -> (session: SessionStore.Session, agreed: ProtocolVersion, faculties: ClientCapabilities)?
    {
        guard let id = call.headers.session.first else { return nil }
        guard let agreement = sessions.key.agreement(of: id) else {
            throw HTTPRejection(
                404,
                .invalidRequest("no session of this broker has that id: begin anew with initialize")
            )
        }
        return (session(id, of: caller), agreement.revision, agreement.faculties)
    }

    @discardableResult
    private func checkRevision(_ call: MCPHTTPRequest, _ agreed: ProtocolVersion?) throws(HTTPRejection)
        -> ProtocolVersion
    {
        do { return try ProtocolMode.revision(call.headers, agreed: agreed) } catch { throw HTTPRejection(400, error) }
    }

    private func take(_ notification: RPCNotification, _ session: SessionStore.Session) async {
        guard notification.method == "notifications/cancelled",
            let id = notification.params?["requestId"].flatMap(RPCID.init)
        else { return }
        await sessions.cancel(id, of: session)
    }

    /// RFC 9110, section 15.5.7: with what there would be.
    private static func notAccepted(_ types: [String], to id: RPCID? = nil) -> HTTPRejection {
        HTTPRejection(406, .invalidRequest("send the header Accept: \(types.joined(separator: ", "))"), to: id)
    }

    private static func read(_ json: JSON) -> Result<RPCMessage, RejectedMessage> {
        do throws(RPCError) { return .success(try RPCMessage(json)) } catch {
            return .failure(RejectedMessage(id: json["id"].flatMap(RPCID.init), error: error))
        }
    }
}
