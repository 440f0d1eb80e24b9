import Model
import SystemIO

/// Sends requests to a client with a session, on the response streams of the client's own requests.
struct ServerRequestSender: Sendable {
    let sessions: SessionStore
    let session: SessionStore.Session
    /// The client's request whose stream is used. Its end ends the requests to the client. Nil to use the stream of any
    /// running request of the session.
    let boundRequest: InFlightRequest?

    /// Sends a request, and returns the client's response. Cancelling the task cancels the request.
    ///
    /// Returns an error if the bound request ends before the client has responded.
    func send(_ method: String, _ params: JSONObject?) async -> Result<JSON, RPCError> {
        let response = Promise<Result<JSON, RPCError>>()
        guard let id = await sessions.registerServerRequest(to: session, { response.complete(.success($0)) }) else {
            return .failure(
                .internalError("the client has \(SessionStore.serverRequestLimit) unanswered requests already")
            )
        }
        boundRequest?.completion.register(response)
        if await !write(.request(RPCRequest(id: id, method: method, params: params))) {
            response.complete(.success(.failure(.internalError("the client does not read its stream"))))
        }
        let outcome: Result<JSON, RPCError>
        do { outcome = try await response.value() } catch {
            // Tells the client to stop working on the request.
            let end = RPCNotification(method: "notifications/cancelled", params: ["requestId": id.json])
            await write(.notification(end))
            outcome = .failure(.internalError("the request was cancelled"))
        }
        boundRequest?.completion.unregister(response)
        await sessions.cancelServerRequest(id, of: session)
        return outcome
    }

    /// Writes a message on a stream. Returns false if no stream takes the message.
    @discardableResult
    private func write(_ message: RPCMessage) async -> Bool {
        if let boundRequest { boundRequest.send(message) } else { await sessions.send(message, to: session) }
    }
}
