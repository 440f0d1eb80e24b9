import FoundationEssentials
import JSON

/// MCP's Streamable HTTP transport for one MCP URL.
///
/// Each request is handled by the rules of its own protocol version. Clients of all versions can use the same URL at
/// the same time. The server behind the transport is independent of versions.
package struct StreamableHTTPTransport: Sendable {
    let server: any MCPServer
    let sessions: SessionStore
    let artifacts: (any ArtifactReader)?
    let keepAliveTimer: KeepAliveTimer

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - server: Handles the requests.
    ///   - sessions: The session state; all transports of a broker may share one store.
    ///   - keepAliveTimer: Keeps idle streams open.
    ///   - artifacts: The artifacts that results refer to. They can be read at every URL.
    package init(
        _ server: any MCPServer,
        sessions: SessionStore,
        keepAliveTimer: KeepAliveTimer,
        artifacts: (any ArtifactReader)? = nil
    ) {
        self.server = server
        self.sessions = sessions
        self.artifacts = artifacts
        self.keepAliveTimer = keepAliveTimer
    }

    /// Handles one HTTP request.
    ///
    /// - Throws: If the client disconnects before the response is complete.
    package func serve<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ httpRequest: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        switch await disposition(of: httpRequest, from: caller) {
        case .reply(let reply): try await writer.write(reply)
        case .run(let parsedRequests, let isBatch):
            try await run(parsedRequests, isBatch: isBatch, for: httpRequest, of: caller, to: &writer)
        case .subscribe(let subscription):
            try await streamSubscription(subscription, for: httpRequest, of: caller, to: &writer)
        case .stream(let session, let isResumed):
            try await streamSession(session, isResumed: isResumed, for: httpRequest, of: caller, to: &writer)
        }
    }

    /// Returns the caller's session with this ID.
    func session(_ id: String, of caller: AgentCaller) -> SessionStore.Session {
        SessionStore.Session(id: id, holder: caller.holder)
    }
}

/// Artifacts, which results refer to if their content is too large.
extension StreamableHTTPTransport {
    private static let prefix = "patchbay://artifact/"

    /// Reads an artifact. Returns nil if the server has to handle the request.
    func artifact(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject? {
        guard let artifacts, request.method == "resources/read", let uri = request.params["uri"]?.string,
            uri.hasPrefix(Self.prefix)
        else { return nil }
        guard let artifact = await artifacts.artifact(String(uri.dropFirst(Self.prefix.count)), for: caller) else {
            throw .resourceNotFound(uri)
        }
        var content: JSONObject = ["uri": .string(uri), "mimeType": .string(artifact.mimeType)]
        if artifact.isText, let text = String(validating: artifact.bytes, as: UTF8.self) {
            content["text"] = .string(text)
        } else {
            content["blob"] = .string(Data(artifact.bytes).base64EncodedString())
        }
        return ["contents": [.object(content)]]
    }
}

extension Artifact {
    fileprivate var isText: Bool { mimeType.hasPrefix("text/") || mimeType == "application/json" }
}

/// The action for one HTTP request.
enum RequestDisposition: Sendable {
    case reply(MCPHTTPResponse)
    /// Runs one request, or a batch (MCP 2025-03-26) in which each message has its own outcome.
    case run([Result<ParsedRequest, RejectedMessage>], isBatch: Bool)
    /// The subscription stream of 2026-07-28.
    case subscribe(SubscriptionRequest)
    /// The GET stream of the session protocols; resumed if its session is from an earlier run.
    case stream(SessionStore.Session?, isResumed: Bool)
}

/// A validated request for the server.
struct ParsedRequest: Sendable {
    let id: RPCID
    let method: String
    /// The parameters without the protocol's own members.
    let params: JSONObject
    let meta: RequestMeta
    let mode: ProtocolMode
    let session: SessionStore.Session?
    /// The capabilities of the session's client. In 2026-07-28 each request carries its own.
    var capabilities: ClientCapabilities = []
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
}
