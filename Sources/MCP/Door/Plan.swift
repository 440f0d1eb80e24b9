import JSON

/// What is to be done about one HTTP request.
enum Plan: Sendable {
    case reply(AgentReply)
    /// In a batch, as 2025-03-26 had them, each message has its own outcome.
    case run([Result<Inquiry, RefusedMessage>], isBatch: Bool)
    /// The stream that 2026-07-28 has.
    case listen(Subscription)
    /// The stream that the eras before had; resumed where it belongs to a session of an earlier run.
    case follow(SessionDesk.Session?, isResumed: Bool)
}

/// One request for the server.
struct Inquiry: Sendable {
    let id: RPCID
    let method: String
    /// Without the protocol's own members.
    let params: JSONObject
    let meta: RequestMeta
    let era: Era
    let session: SessionDesk.Session?
    /// What the session's client can be asked; in 2026-07-28 each request says it.
    var faculties: Faculties = []
}

/// A message of a batch that is not run.
struct RefusedMessage: Error {
    let id: RPCID?
    let error: RPCError
}

/// What is answered instead of going on.
struct Refusal: Error {
    let reply: AgentReply

    init(_ status: Int, _ error: RPCError, to id: RPCID? = nil) { reply = AgentReply(status, error, to: id) }
    init(_ status: Int, headers: [AgentReply.Header] = []) { reply = AgentReply(status, headers: headers) }
}
