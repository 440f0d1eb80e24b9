import FoundationEssentials
import JSON

/// One MCP address: what comes in over HTTP, in whichever revision, and what goes back.
///
/// Each request is answered by the rules of the revision that it is written in, so that clients of both eras use the same
/// address at the same time. What is asked, the server behind it answers; it knows nothing of revisions.
package struct StreamableHTTPTransport: Sendable {
    let server: any MCPServer
    let sessions: SessionStore
    let artifacts: (any ArtifactReader)?
    let heartbeat: KeepAliveTimer

    /// - Parameters:
    ///   - server: Who answers here.
    ///   - sessions: May be shared by all addresses of a broker.
    ///   - heartbeat: Breaks the silence on streams.
    ///   - artifacts: What results refer to; read at every address, since a result may come from any.
    package init(
        _ server: any MCPServer,
        sessions: SessionStore,
        heartbeat: KeepAliveTimer,
        artifacts: (any ArtifactReader)? = nil
    ) {
        self.server = server
        self.sessions = sessions
        self.artifacts = artifacts
        self.heartbeat = heartbeat
    }

    /// Answers one HTTP request.
    ///
    /// - Throws: When the caller has gone before it had the whole answer.
    package func serve<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ call: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        switch await plan(for: call, of: caller) {
        case .reply(let reply): try await writer.write(reply)
        case .run(let errands, let isBatch): try await run(errands, isBatch, for: call, of: caller, to: &writer)
        case .listen(let subscription): try await listen(subscription, for: call, of: caller, to: &writer)
        case .follow(let session, let isResumed):
            try await follow(session, isResumed: isResumed, for: call, of: caller, to: &writer)
        }
    }

    func session(_ id: String, of caller: AgentCaller) -> SessionStore.Session {
        SessionStore.Session(id: id, holder: caller.holder)
    }
}

/// What results refer to because it is too large for them.
extension StreamableHTTPTransport {
    private static let prefix = "patchbay://artifact/"

    /// Nil for what the server is asked.
    func artifact(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject? {
        guard let artifacts, request.method == "resources/read", let uri = request.params["uri"]?.string,
            uri.hasPrefix(Self.prefix)
        else { return nil }
        guard let artifact = await artifacts.artifact(String(uri.dropFirst(Self.prefix.count)), for: caller) else {
            throw .unknownResource(uri)
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
