import JSON
import SystemIO

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

/// Requests to a client with a session, on the stream of the client's own request.
extension StreamableHTTPTransport {
    /// Returns the requester for a client request.
    ///
    /// Returns nil if the client accepts no requests and has set no log level. Without a running request, sending
    /// fails, but the requester still identifies the client.
    func clientRequester(for parsed: ParsedRequest, during inFlight: InFlightRequest?, hasLogLevel: Bool)
        -> ClientRequester?
    {
        guard case .session(let version) = parsed.mode, let session = parsed.session,
            hasLogLevel || !parsed.capabilities.isEmpty
        else { return nil }
        return ClientRequester(
            key: session.id,
            protocolVersion: version,
            capabilities: parsed.capabilities,
            isSingleClient: true,
            handlesInputRequired: true
        ) { method, params, isBound in
            guard let inFlight else { return .failure(.internalError("no request of the client is running")) }
            return await sendRequest(method, params, of: session, during: isBound ? inFlight : nil)
        }
    }

    /// Sends a request to the client.
    ///
    /// Returns an error if the client's own request ends before the client has responded. An unbound request uses the
    /// stream of any running request of the session.
    private func sendRequest(
        _ method: String,
        _ params: JSONObject?,
        of session: SessionStore.Session,
        during inFlight: InFlightRequest?
    ) async -> Result<JSON, RPCError> {
        let response = Promise<Result<JSON, RPCError>>()
        guard let id = await sessions.registerServerRequest(to: session, { response.complete(.success($0)) }) else {
            return .failure(
                .internalError("the client has \(SessionStore.serverRequestLimit) unanswered requests already")
            )
        }
        let serverRequest = RPCRequest(id: id, method: method, params: params)
        inFlight?.completion.register(response)
        let isSent =
            if let inFlight { inFlight.send(.request(serverRequest)) } else {
                await sessions.send(.request(serverRequest), to: session)
            }
        if !isSent {
            response.complete(.success(.failure(.internalError("the client does not read its stream"))))
        }
        let outcome: Result<JSON, RPCError>
        do { outcome = try await response.value() } catch {
            // Tells the client to stop working on the request.
            let end = RPCNotification(method: "notifications/cancelled", params: ["requestId": id.json])
            if let inFlight {
                inFlight.send(.notification(end))
            } else {
                await sessions.send(.notification(end), to: session)
            }
            outcome = .failure(.internalError("the request was cancelled"))
        }
        inFlight?.completion.unregister(response)
        await sessions.cancelServerRequest(id, of: session)
        return outcome
    }
}
