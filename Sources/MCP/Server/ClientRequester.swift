import Model

/// Sends requests of an app to the MCP client (elicitation, sampling, roots) while a request of that client runs.
package struct ClientRequester: Sendable {
    typealias SendRequest =
        @Sendable (_ method: String, _ params: JSONObject?, _ isBound: Bool) async ->
        Result<JSON, RPCError>

    /// Identifies the client and its holder. All requests with the same key share a session at an app, which no other
    /// client uses.
    let key: String
    /// The version that the client negotiated. The app is asked for the same version.
    let protocolVersion: ProtocolVersion
    let capabilities: ClientCapabilities
    /// True if the key belongs to exactly one client. Any of its requests can then carry a request of the app.
    ///
    /// Otherwise each client request has an app session of its own while it runs.
    let isSingleClient: Bool
    /// True if `input_required` results (MCP 2026-07-28) are answered through this requester too. Otherwise they are
    /// passed on to the client.
    let handlesInputRequired: Bool
    /// Sends a request to the client and returns its response.
    ///
    /// A bound request ends with the client request that it belongs to. An unbound one may concern any request of that
    /// client. Cancelling the task cancels the request.
    let sendRequest: SendRequest
}

extension ClientRequester {
    /// Creates the requester for a client with a session.
    ///
    /// Returns nil if the client accepts no requests and has set no log level. Without a running request, sending
    /// fails, but the requester still identifies the client.
    init?(for parsed: ParsedRequest, in sessions: SessionStore, during inFlight: InFlightRequest?, hasLogLevel: Bool) {
        guard case .session(let version) = parsed.mode, let session = parsed.session,
            hasLogLevel || !parsed.capabilities.isEmpty
        else { return nil }
        self.init(
            key: session.id,
            protocolVersion: version,
            capabilities: parsed.capabilities,
            isSingleClient: true,
            handlesInputRequired: true
        ) { method, params, isBound in
            guard let inFlight else { return .failure(.internalError("no request of the client is running")) }
            let sender = ServerRequestSender(
                sessions: sessions,
                session: session,
                boundRequest: isBound ? inFlight : nil
            )
            return await sender.send(method, params)
        }
    }
}
