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
