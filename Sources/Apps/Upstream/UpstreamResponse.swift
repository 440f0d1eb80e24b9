import AccessControl
import Model

/// The app's response to one message.
struct UpstreamResponse: Sendable {
    /// The HTTP status; 200 for a response without HTTP.
    var status = 200
    /// The value of `Mcp-Session-Id`, if it can be sent back.
    var sessionID: String?
    /// The app's result or error; nil for a notification, and for a response without a body.
    let outcome: Result<JSON, RPCError>?
    /// The size of the body in bytes.
    var size = 0
    /// Held until a large result has been reduced; nil for a small response.
    var reservation: LargeResponseReservation?
    /// The text of an error status without a JSON-RPC answer, with the time after which the app may be asked again.
    var refusal: String?
    /// The value of `Location`.
    var location: String?
    /// The target of a redirect.
    var redirect: RedirectTarget?
}

extension UpstreamResponse {
    /// Describes how a response shows that the server has lost the state of the handshake.
    enum Staleness: Hashable, Sendable {
        /// The protocol says that the request was not processed.
        case notProcessed
        /// The error message suggests a lost session. The request may have been processed.
        case possiblyProcessed
    }

    /// Returns how the response shows lost handshake state; nil if the response is normal.
    func staleness(of server: ServerInfo) -> Staleness? {
        // MCP 2025-03-26 and later, session management: 404 requires a new session.
        if status == 404, server.sessionID != nil { return .notProcessed }
        guard status == 400, case .failure(let error)? = outcome else { return nil }
        // HeaderMismatch and UnsupportedProtocolVersion of 2026-07-28; earlier servers only say in the message which
        // part is missing.
        if error.code == -32_020 || error.code == -32_022 { return .notProcessed }
        let message = error.message.lowercased()
        return ["session", "_meta", "protocol"].contains { message.contains($0) } ? .possiblyProcessed : nil
    }

    /// Returns the error that the status alone implies.
    func rejection(by routes: [AuthorizedRoute]) -> AppError? {
        switch status {
        case 401: .tokenRequired(routes.contains { $0.secret != nil } ? .rejected : .missing)
        default: redirect.map { .invalidResponse("a redirect to \($0), which is not followed") }
        }
    }

    /// Checks that the response to a request has an error or a result of the right type.
    func validate(by routes: [AuthorizedRoute]) throws(AppError) {
        if let failure = rejection(by: routes) { throw failure }
        switch outcome {
        case .success(let result)? where result.object == nil: throw .invalidResponse("a result that is not an object")
        case nil: throw .invalidResponse("status \(status)\(refusal ?? "")")
        case .success?, .failure?: break
        }
    }

    /// Returns the result of a validated response.
    ///
    /// - Throws: The app's own error.
    func result() throws(RPCError) -> JSONObject { try outcome?.get().object ?? [:] }
}
