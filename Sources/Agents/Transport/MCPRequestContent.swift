import Apps
import Model

/// The content of an HTTP request.
enum MCPRequestContent: Sendable {
    case request(ParsedRequest)
    /// The messages of a client without a response of their own, and the requests of a batch (MCP 2025-03-26), each with
    /// its own outcome. Without requests the response has no body.
    case messages([RPCMessage], of: SessionStore.Session?, batch: [Result<ParsedRequest, RejectedMessage>] = [])
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
}

/// A message of a batch that is not run.
struct RejectedMessage: Error {
    let id: RPCID?
    let error: RPCError
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
