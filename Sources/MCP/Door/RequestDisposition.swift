import JSON

/// What is to be done about one HTTP request.
enum RequestDisposition: Sendable {
    case reply(MCPHTTPResponse)
    /// In a batch, as 2025-03-26 had them, each message has its own outcome.
    case run([Result<ParsedRequest, RejectedMessage>], isBatch: Bool)
    /// The stream that 2026-07-28 has.
    case listen(SubscriptionRequest)
    /// The stream that the eras before had; resumed where it belongs to a session of an earlier run.
    case follow(SessionStore.Session?, isResumed: Bool)
}

/// One request for the server.
struct ParsedRequest: Sendable {
    let id: RPCID
    let method: String
    /// Without the protocol's own members.
    let params: JSONObject
    let meta: RequestMeta
    let era: ProtocolMode
    let session: SessionStore.Session?
    /// What the session's client can be asked; in 2026-07-28 each request says it.
    var faculties: ClientCapabilities = []
}

/// A message of a batch that is not run.
struct RejectedMessage: Error {
    let id: RPCID?
    let error: RPCError
}

/// What is answered instead of going on.
struct HTTPRejection: Error {
    let reply: MCPHTTPResponse

    init(_ status: Int, _ error: RPCError, to id: RPCID? = nil) { reply = MCPHTTPResponse(status, error, to: id) }
    init(_ status: Int, headers: [MCPHTTPResponse.Header] = []) { reply = MCPHTTPResponse(status, headers: headers) }
}
