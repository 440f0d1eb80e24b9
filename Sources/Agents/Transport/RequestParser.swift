import Apps
import Model

/// Parses HTTP requests by the rules of their protocol versions.
///
/// The parser needs no handler: a session ID carries the result of its handshake.
struct RequestParser: Sendable {
    /// The maximum number of messages in a batch.
    static let batchLimit = 64
    private static let allow = MCPHTTPResponse.Header(name: "Allow", value: "POST, GET, DELETE")

    /// Checks the signatures of session IDs.
    let signer: SessionIDSigner
    let endedSessions: EndedSessions

    /// The session that a request names, and the result of its handshake.
    private typealias SessionContext = (session: SessionStore.Session, claims: SessionIDSigner.SessionClaims)

    /// Parses an HTTP request of a holder of sessions. A large body is parsed on another thread.
    ///
    /// - Throws: The response that rejects the request.
    func parse(_ httpRequest: MCPHTTPRequest, holder: String) async throws(HTTPRejection) -> MCPRequestContent {
        let headers = httpRequest.headers
        switch httpRequest.method {
        case .post:
            guard headers.acceptsJSON || headers.acceptsEvents else {
                throw .notAccepted(["application/json", "text/event-stream"])
            }
            let json: JSON
            do { json = try await JSON.parse(httpRequest.body) } catch {
                throw HTTPRejection(400, .parseError(error.description))
            }
            if case .array(let messages) = json { return try parseBatch(messages, headers, holder: holder) }
            return try parseMessage(json, headers, holder: holder)
        case .get: return try parseStream(headers, holder: holder)
        case .delete: return .end(try sessionContext(of: headers, holder: holder)?.session)
        }
    }

    private func parseMessage(_ json: JSON, _ headers: MCPRequestHeaders, holder: String) throws(HTTPRejection)
        -> MCPRequestContent
    {
        switch Self.message(json) {
        case .failure(let rejected):
            throw HTTPRejection(400, rejected.error, to: rejected.id)
        case .success(.request(let request)):
            return try parseRequest(request, headers, holder: holder)
        case .success(let message):
            let context = try sessionContext(of: headers, holder: holder)
            if case .notification = message { _ = try Self.version(in: headers, context) }
            return .messages([message], of: context?.session)
        }
    }

    private func parseRequest(_ request: RPCRequest, _ headers: MCPRequestHeaders, holder: String)
        throws(HTTPRejection) -> MCPRequestContent
    {
        var params = request.params ?? [:]
        let meta = RequestMeta(from: &params)
        // A stateless request has no session.
        let context = meta.protocolVersion == nil ? try sessionContext(of: headers, holder: holder) : nil
        let mode: ProtocolMode
        do {
            mode = try ProtocolMode(of: request, meta: meta, headers: headers, negotiated: context?.claims.version)
        } catch {
            throw HTTPRejection(400, error, to: request.id)
        }
        let isStateless = mode == .stateless
        var parsed = ParsedRequest(
            id: request.id,
            request: MCPRequest(
                request.method,
                params,
                capabilities: isStateless ? meta.capabilities?.object ?? [:] : [:]
            ),
            meta: meta,
            mode: mode,
            session: isStateless ? nil : context?.session,
            capabilities: isStateless ? [] : context?.claims.capabilities ?? []
        )
        parsed.request.trace = CallTrace(header: headers.trace, meta: meta.trace)
        guard isStateless, request.method == "subscriptions/listen" else { return .request(parsed) }
        guard headers.acceptsEvents else { throw .notAccepted(["text/event-stream"], to: request.id) }
        return .subscription(parsed)
    }

    private func parseBatch(_ batch: [JSON], _ headers: MCPRequestHeaders, holder: String) throws(HTTPRejection)
        -> MCPRequestContent
    {
        let context = try sessionContext(of: headers, holder: holder)
        let version = try Self.version(in: headers, context)
        guard version < .v2025_06_18 else {
            throw HTTPRejection(400, .invalidRequest("\(version.rawValue) has no batches: send one message at a time"))
        }
        guard (1...Self.batchLimit).contains(batch.count) else {
            throw HTTPRejection(400, .invalidRequest("a batch has 1 to \(Self.batchLimit) messages"))
        }
        var requests: [Result<ParsedRequest, RejectedMessage>] = []
        var messages: [RPCMessage] = []
        for json in batch {
            switch Self.message(json) {
            case .failure(let rejected): requests.append(.failure(rejected))
            case .success(.request(let request)):
                var params = request.params ?? [:]
                let meta = RequestMeta(from: &params)
                var parsed = ParsedRequest(
                    id: request.id,
                    request: MCPRequest(request.method, params),
                    meta: meta,
                    mode: .session(version),
                    session: context?.session,
                    capabilities: []
                )
                parsed.request.trace = CallTrace(header: headers.trace, meta: meta.trace)
                requests.append(.success(parsed))
            case .success(let message):
                messages.append(message)
            }
        }
        return .messages(messages, of: context?.session, batch: requests)
    }

    private func parseStream(_ headers: MCPRequestHeaders, holder: String) throws(HTTPRejection) -> MCPRequestContent {
        guard headers.acceptsEvents else { throw .notAccepted(["text/event-stream"]) }
        let context = try sessionContext(of: headers, holder: holder)
        // MCP 2026-07-28 has no GET streams; 405 tells the client so.
        guard !(try Self.version(in: headers, context)).isStateless else {
            throw HTTPRejection(405, headers: [Self.allow])
        }
        if context != nil, let response = headers.lastEvent.first.flatMap(CallResumption.response) {
            return .interruptedCall(response)
        }
        return .stream(context?.session)
    }

    /// Returns the session of a request; nil if the request names none.
    ///
    /// - Throws: 404 for a session that the client has ended, and for a session ID that this broker did not sign.
    ///   The client then starts a new session (MCP 2025-11-25, transports, session management).
    private func sessionContext(of headers: MCPRequestHeaders, holder: String) throws(HTTPRejection) -> SessionContext?
    {
        guard let id = headers.session.first else { return nil }
        let session = SessionStore.Session(id: id, holder: holder)
        guard let claims = signer.claims(of: id), !endedSessions.contains(session) else {
            throw HTTPRejection(404, .invalidRequest("unknown session ID: start a new session with initialize"))
        }
        return (session, claims)
    }

    /// Returns the version of a message without its own `_meta`.
    ///
    /// - Throws: 400 for an unknown version.
    private static func version(in headers: MCPRequestHeaders, _ context: SessionContext?) throws(HTTPRejection)
        -> ProtocolVersion
    {
        do { return try ProtocolMode.version(in: headers, negotiated: context?.claims.version) } catch {
            throw HTTPRejection(400, error)
        }
    }

    private static func message(_ json: JSON) -> Result<RPCMessage, RejectedMessage> {
        do throws(RPCError) { return .success(try RPCMessage(json)) } catch {
            return .failure(RejectedMessage(id: json["id"].flatMap(RPCID.init), error: error))
        }
    }
}
