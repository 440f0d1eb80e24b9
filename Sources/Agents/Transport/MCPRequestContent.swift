import Apps
import Model

/// The content of an HTTP request.
enum MCPRequestContent: Sendable {
    case request(ParsedRequest)
    /// The requests of a batch (MCP 2025-03-26), each with its own outcome, and the messages to receive before.
    case batch([Result<ParsedRequest, RejectedMessage>], after: [SessionMessage])
    /// Messages only. The response has no body.
    case messages([SessionMessage])
    /// `subscriptions/listen` (MCP 2026-07-28).
    case subscription(ParsedRequest)
    /// The GET stream of the session protocols.
    case stream(SessionStore.Session?)
    /// A GET stream that resumes an interrupted call, with the response to that call.
    case interruptedCall(JSON)
    /// The end of a session.
    case end(SessionStore.Session?)
}

/// A validated request: the handler's part, and the protocol's part for the response.
struct ParsedRequest: Sendable {
    let id: RPCID
    /// The handler's part, without the protocol's own members.
    var request: MCPRequest
    let meta: RequestMeta
    let mode: ProtocolMode
    let session: SessionStore.Session?
    /// The capabilities of the session's client. In 2026-07-28 each request carries its own.
    let capabilities: ClientCapabilities

    /// Combines the parts of a request.
    ///
    /// - Parameters:
    ///   - id: The ID of the request.
    ///   - method: The method.
    ///   - params: The parameters without the members of `meta`.
    ///   - meta: The protocol's own members of the parameters.
    ///   - mode: The protocol rules for the request.
    ///   - session: The session of a session protocol.
    ///   - capabilities: The capabilities of the session's client.
    init(
        id: RPCID,
        method: String,
        params: JSONObject,
        meta: RequestMeta,
        mode: ProtocolMode,
        session: SessionStore.Session?,
        capabilities: ClientCapabilities = []
    ) {
        let isStateless = mode == .stateless
        self.id = id
        request = MCPRequest(
            method,
            params,
            capabilities: isStateless ? meta.capabilities?.object ?? [:] : [:],
            supportsInputRequired: isStateless
        )
        self.meta = meta
        self.mode = mode
        self.session = session
        self.capabilities = capabilities
    }
}

/// A message of a batch that is not run.
struct RejectedMessage: Error {
    let id: RPCID?
    let error: RPCError
}

/// A message of a session that gets no response of its own.
struct SessionMessage: Sendable {
    enum Content: Sendable {
        /// Cancels the running request of this ID.
        case cancellation(RPCID)
        /// Responds to the broker's request of this ID.
        case response(RPCID, Result<JSON, RPCError>)
    }

    let session: SessionStore.Session
    let content: Content

    /// Returns nil for a message without an effect: one without a session, or another notification.
    init?(_ message: RPCMessage, of session: SessionStore.Session?) {
        guard let session else { return nil }
        self.session = session
        switch message {
        case .notification(let notification) where notification.method == "notifications/cancelled":
            guard let id = notification.params?["requestId"].flatMap(RPCID.init) else { return nil }
            content = .cancellation(id)
        case .response(let id?, let outcome): content = .response(id, outcome)
        case .request, .notification, .response: return nil
        }
    }
}

/// An HTTP response that rejects a request.
struct HTTPRejection: Error {
    let response: MCPHTTPResponse

    init(_ status: Int, _ error: RPCError, to id: RPCID? = nil) { response = MCPHTTPResponse(status, error, to: id) }
    init(_ status: Int, headers: [MCPHTTPResponse.Header] = []) { response = MCPHTTPResponse(status, headers: headers) }

    /// A 406 response that lists the available types (RFC 9110, section 15.5.7).
    static func notAccepted(_ types: [String], to id: RPCID? = nil) -> HTTPRejection {
        HTTPRejection(406, .invalidRequest("send the header Accept: \(types.joined(separator: ", "))"), to: id)
    }
}
