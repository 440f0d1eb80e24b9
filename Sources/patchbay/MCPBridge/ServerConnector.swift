import Client
import Model
import SystemIO

/// The MCP server of one request.
struct MCPServerAddress: Sendable {
    let client: PatchbayClient
    let target: MCPTarget
}

/// The broker does not know the session of a request, for example after it lost its state.
struct UnknownSession: Error {}

/// Finds the server of a request, and begins a session there.
///
/// The bridge answers `initialize` itself while no broker is reachable. The session then begins with a later request.
struct ServerConnector: Sendable {
    let resolver: TargetResolver
    let session = BridgeSession()
    private let handshakes = AsyncSemaphore(permits: 1)

    init(resolver: TargetResolver) { self.resolver = resolver }

    /// Returns the server for messages that are the same for every phone.
    ///
    /// - Throws: `CLIError`, `ClientError`.
    func anyServer() async throws -> MCPServerAddress {
        let client = try resolver.client()
        switch try await resolver.resolve(with: client) {
        case .server(let target): return MCPServerAddress(client: client, target: target)
        case .several(let candidates, _): return MCPServerAddress(client: client, target: .endpoint(candidates[0].id))
        }
    }

    /// Begins a session with the client's own `initialize`, unless there is one. The broker accepts a session ID at each
    /// of its servers.
    ///
    /// - Throws: `CLIError`, `ClientError`.
    func beginSession(at server: MCPServerAddress) async throws {
        guard session.current.pendingHandshake != nil else { return }
        let permit = try await handshakes.acquire()
        defer { permit.release() }
        guard let handshake = session.current.pendingHandshake else { return }
        _ = try await response(to: handshake, from: server)
    }

    /// Sends a request of the bridge and returns the response.
    ///
    /// - Throws: `CLIError`, `ClientError`, `UnknownSession`.
    func response(to message: ClientMessage, from server: MCPServerAddress) async throws -> JSON {
        let post = message.post(in: message.isInitialize ? MCPSessionInfo() : session.current.info)
        var response: JSON?
        try await server.client.send(post, to: server.target) { part in
            switch part {
            case .opened(let id): session.update { $0.connected(message, sessionID: id) }
            case .message(let bytes, _):
                let json = try? JSON(parsing: bytes)
                if json?["method"] == nil, json?["id"] == message.id { response = json }
            case .refused(let status, let body): throw Self.error(status, body)
            }
        }
        if message.isInitialize, let response { session.update { $0.initialized(response) } }
        if let response, response["result"] != nil { return response }
        let reason = response?["error"]?["message"]?.string.map { SanitizedText($0, limit: 500).text }
        throw CLIError.failed(
            reason ?? "the broker did not respond to \(message.method ?? "a request")",
            try: "patchbay mcp check"
        )
    }

    /// Converts an HTTP error response to an error.
    static func error(_ status: Int, _ body: [UInt8]) -> any Error {
        if LocalResponse.isUnknownSession(status, body) { return UnknownSession() }
        if let problem = LocalResponse.problem(body) { return ClientError.refused(problem) }
        return CLIError.failed(LocalResponse.reason(status, body), try: "patchbay mcp check")
    }
}
