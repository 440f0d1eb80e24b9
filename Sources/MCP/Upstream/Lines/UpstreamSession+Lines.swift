import AccessControl
import JSON
import Model
import SystemIO

/// Servers with one message per line on a TCP stream: SwiftMCP and iMCP, which Bonjour announces as `_mcp._tcp`.
extension UpstreamSession {
    /// Sends one message over the line transport. Without a message, follows the messages of the server.
    func exchangeLines(
        _ message: JSON?,
        by routes: [AuthorizedRoute],
        awaiting id: RPCID?,
        limits: UpstreamLimits,
        admission: Admission?,
        notify: (@Sendable (RPCNotification) -> Void)?
    ) async throws -> UpstreamResponse {
        // Another stream cannot replace this one, because its handshake has not been done.
        guard let lineTransport, routes.contains(where: { $0.route == lineTransport.route }) else {
            throw UpstreamError.unwritten
        }
        guard let message else {
            // There is no separate stream for messages of the server.
            try await lineTransport.follow()
            return UpstreamResponse(status: 200, sessionID: nil, outcome: nil, size: 0)
        }
        let handler = UpstreamMessageHandler(
            id,
            session: self,
            routes: routes,
            notify: notify,
            schedule: schedule,
            onChange: onChange
        )
        return try await lineTransport.exchange(message, awaiting: id, limits: limits, by: admission, handler: handler)
    }

    /// Returns whether the connected server can still be used without a new handshake.
    func isUsable(_ server: ServerInfo, _ routes: [AuthorizedRoute]) async -> Bool {
        guard server.transport == .lines else { return true }
        return await lineTransport?.isUsable(over: routes) ?? false
    }

    /// Performs the handshake on a new stream, which is kept.
    ///
    /// - Returns: Nil if the server does not answer with messages in lines.
    /// - Throws: `UpstreamError`; `responseLost` and `timedOut` if no response shows which protocol the server speaks.
    func connectOverLines(_ routes: [AuthorizedRoute]) async throws -> ServerInfo? {
        let (connection, _, _) = try await openConnection(routes, mayReuse: false)
        let defaultHandler = UpstreamMessageHandler(
            nil,
            session: self,
            routes: routes,
            notify: nil,
            schedule: schedule,
            onChange: onChange
        )
        lineTransport = LineTransport(connection, clock: clock, handler: defaultHandler)
        scheduleCloseIdle()
        do {
            let server = try await handshakeOverLines(by: routes)
            if server == nil { lineTransport = nil }
            return server
        } catch {
            lineTransport = nil
            throw error
        }
    }

    /// MCP 2026-07-28, stdio, backward compatibility: any error or silence indicates an earlier version.
    private func handshakeOverLines(by routes: [AuthorizedRoute]) async throws -> ServerInfo? {
        var hasResponded = false
        let response: UpstreamResponse
        do {
            do {
                let discovered = try await sendOverLines(ServerInfo.discoveryRequest, by: routes, limits: .discovery)
                hasResponded = true
                if case .success(let result)? = discovered.outcome,
                    let server = ServerInfo(discovery: result, at: .lines)
                {
                    return server
                }
            } catch UpstreamError.timedOut {}
            // An MCP server may first ask a person to confirm the connection.
            response = try await sendOverLines(
                ServerInfo.handshake(),
                by: routes,
                limits: hasResponded ? limits : .handshake
            )
        } catch UpstreamError.invalidResponse where !hasResponded {
            return nil
        } catch UpstreamError.responseLost where hasResponded {
            // Not retried at the poll interval, because that would ask the person each time.
            throw UpstreamError.invalidResponse("the end of the connection during the handshake")
        }
        guard case .success(let result)? = response.outcome else { return nil }
        let server = try ServerInfo(handshake: result, at: .lines, sessionID: nil)
        let done = RPCMessage.notification(RPCNotification(method: "notifications/initialized"))
        _ = try await exchange(done.json, at: .lines, headers: [], by: routes, awaiting: nil, limits: .handshake)
        return server
    }

    private func sendOverLines(_ request: RPCRequest, by routes: [AuthorizedRoute], limits: UpstreamLimits)
        async throws
        -> UpstreamResponse
    {
        let message = RPCMessage.request(request).json
        return try await exchange(message, at: .lines, headers: [], by: routes, awaiting: request.id, limits: limits)
    }
}
