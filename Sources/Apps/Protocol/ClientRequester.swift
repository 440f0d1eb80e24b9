package import Model
import SystemIO

/// Sends requests of an app to the MCP client (elicitation, sampling, roots) while a request of that client runs.
///
/// Each request is suspended in `ask` until the client has answered, whatever the protocol versions of the two sides.
/// `AppRequests` and `RequestSender.answerInputRequests` read the requests of apps, from streams and from results.
/// `SessionStore` and `SuspendedRequest` pass them to clients, on streams and as results.
package struct ClientRequester: Sendable {
    package typealias SendRequest =
        @Sendable (_ method: String, _ params: JSONObject?, _ isBound: Bool) async ->
        Result<JSON, RPCError>

    /// Identifies the client and its holder. All requests with the same key share a session at an app, which no other
    /// client uses.
    package let key: String
    /// The version that the client negotiated. The app is asked for the same version.
    package let protocolVersion: ProtocolVersion
    package let capabilities: ClientCapabilities
    /// True if the key belongs to exactly one client. Any of its requests can then carry a request of the app.
    ///
    /// Otherwise each client request has an app session of its own while it runs.
    package let isSingleClient: Bool
    /// True if `input_required` results (MCP 2026-07-28) are answered through this requester too. Otherwise they are
    /// passed on to the client.
    package let handlesInputRequired: Bool
    /// Sends a request to the client and returns its response.
    ///
    /// A bound request ends with the client request that it belongs to. An unbound one may concern any request of that
    /// client. Cancelling the task cancels the request.
    package let sendRequest: SendRequest

    package init(
        key: String,
        protocolVersion: ProtocolVersion,
        capabilities: ClientCapabilities,
        isSingleClient: Bool,
        handlesInputRequired: Bool,
        sendRequest: @escaping SendRequest
    ) {
        self.key = key
        self.protocolVersion = protocolVersion
        self.capabilities = capabilities
        self.isSingleClient = isSingleClient
        self.handlesInputRequired = handlesInputRequired
        self.sendRequest = sendRequest
    }

    /// Throws if the client has not declared that it accepts the request.
    func requireCapability(for method: String, _ params: JSONObject?) throws(RPCError) {
        guard capabilities.allow(method, params) else {
            throw RPCError(RPCError.methodNotFound("").code, "the client does not support \(method)")
        }
    }

    /// Sends a request that the client supports, and returns its response, or an error after the time limit.
    func ask(
        _ method: String,
        _ params: JSONObject?,
        isBound: Bool,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async -> Result<JSON, RPCError> {
        let answer = try? await withTimeout(limit, clock: clock) { await sendRequest(method, params, isBound) }
        return answer
            ?? .failure(.internalError("the client did not answer within \(limit.components.seconds) s"))
    }
}
