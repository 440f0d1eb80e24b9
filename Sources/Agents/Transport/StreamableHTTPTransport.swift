package import AccessControl
package import Apps
package import Model

/// MCP's Streamable HTTP transport for one MCP URL.
///
/// Each request is handled by the rules of its own protocol version. Clients of all versions can use the same URL at
/// the same time. The handler behind the transport is independent of versions.
package struct StreamableHTTPTransport: Sendable {
    private let parser: RequestParser
    private let streamHandler: ChangeStreamHandler
    let handler: any MCPRequestHandler
    let sessions: SessionStore
    let keepAliveTimer: KeepAliveTimer
    let artifacts: ArtifactResources?
    /// The endpoint of an app's own server; nil for another server.
    let endpoint: EndpointID?

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - handler: Handles the requests.
    ///   - endpoint: The endpoint of an app's own server; nil for another server.
    ///   - sessions: The session state; all transports of a broker may share one store.
    ///   - keepAliveTimer: Keeps idle streams open.
    ///   - artifacts: The artifacts that results refer to. They can be read at every URL.
    ///   - clock: Measures how long an acknowledgement waits.
    package init(
        _ handler: any MCPRequestHandler,
        endpoint: EndpointID? = nil,
        sessions: SessionStore,
        keepAliveTimer: KeepAliveTimer,
        artifacts: (any ArtifactReader)? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        parser = RequestParser(signer: sessions.key, endedSessions: sessions.endedSessions)
        streamHandler = ChangeStreamHandler(
            handler: handler,
            sessions: sessions,
            keepAliveTimer: keepAliveTimer,
            clock: clock
        )
        self.handler = handler
        self.endpoint = endpoint
        self.sessions = sessions
        self.keepAliveTimer = keepAliveTimer
        self.artifacts = artifacts.map(ArtifactResources.init)
    }

    /// Handles one HTTP request.
    ///
    /// - Throws: If the client disconnects before the response is complete.
    package func serve<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ httpRequest: MCPHTTPRequest,
        of principal: Principal,
        to writer: inout Writer
    ) async throws {
        let content: MCPRequestContent
        do throws(HTTPRejection) {
            content = try await parser.parse(httpRequest, holder: principal.holder)
        } catch {
            return try await writer.write(error.response)
        }
        switch content {
        case .request(let parsed):
            try await run(parsed, for: httpRequest, of: principal, to: &writer)
        case .messages(let messages, let session, let batch):
            if let session { for message in messages { await sessions.receive(message, of: session) } }
            if batch.isEmpty { return try await writer.write(.accepted) }
            try await run(batch, for: httpRequest, of: principal, to: &writer)
        case .subscription(let parsed):
            try await streamHandler.streamSubscription(parsed, for: httpRequest, of: principal, to: &writer)
        case .stream(let session):
            try await streamHandler.streamSession(session, for: httpRequest, of: principal, to: &writer)
        case .interruptedCall(let response):
            try await writer.write(MCPHTTPResponse(events: SSEEncoder.message(response)))
        case .end(let session):
            if let session { await sessions.end(session) }
            try await writer.write(MCPHTTPResponse(204))
        }
    }
}
