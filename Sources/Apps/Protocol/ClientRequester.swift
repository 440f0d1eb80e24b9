package import Model
import SystemIO

/// Sends requests of an app to the MCP client while a request of that client runs.
package struct ClientRequester: Sendable {
    package typealias Send = @Sendable (SuspendedRequest) async -> Result<JSON, RPCError>

    /// Identifies the client and its holder. All requests with the same key share a session at an app, which no other
    /// client uses.
    package let key: String
    /// The version that the client negotiated. The app is asked for the same version.
    package let protocolVersion: ProtocolVersion
    package let capabilities: ClientCapabilities
    /// True for a client that is asked on streams, false for one that is asked by results (MCP 2026-07-28).
    ///
    /// Any request of the first can carry a request of the app, and results that require input are answered through this
    /// requester. For the second, each of its requests has an app session of its own while it runs.
    package let isAskedOnStreams: Bool
    /// Sends a request to the client and waits for the answer. Cancelling the request or the task tells the client.
    package let send: Send

    package init(
        key: String,
        protocolVersion: ProtocolVersion,
        capabilities: ClientCapabilities,
        isAskedOnStreams: Bool,
        send: @escaping Send
    ) {
        self.key = key
        self.protocolVersion = protocolVersion
        self.capabilities = capabilities
        self.isAskedOnStreams = isAskedOnStreams
        self.send = send
    }

    /// Sends a request that the client supports, and returns its answer, or an error after the time limit.
    func ask(
        _ request: SuspendedRequest,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async -> Result<JSON, RPCError> {
        let answer = try? await withTimeout(limit, clock: clock) { await send(request) }
        return answer ?? .failure(.internalError("the client did not answer within \(limit.components.seconds) s"))
    }
}
