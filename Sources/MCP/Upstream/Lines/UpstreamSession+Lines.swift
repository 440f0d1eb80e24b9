import AccessControl
import JSON
import Model
import SystemIO

/// Servers that take a message a line on one stream: SwiftMCP's and iMCP's, which Bonjour knows as `_mcp._tcp`.
extension UpstreamSession {
    func exchangeLines(
        _ message: JSON?,
        _ passages: [AuthorizedRoute],
        awaiting id: RPCID?,
        limits: UpstreamLimits,
        _ admission: Admission?,
        _ notify: (@Sendable (RPCNotification) -> Void)?
    ) async throws -> UpstreamResponse {
        // No other stream can stand in for it: nobody has been greeted there.
        guard let lines, passages.contains(where: { $0.route == lines.route }) else { throw Trouble.unwritten }
        guard let message else {
            // There is no second stream for what the server says by itself.
            try await lines.follow()
            return UpstreamResponse(status: 200, sessionID: nil, outcome: nil, size: 0)
        }
        let listener = UpstreamMessageHandler(
            id,
            line: self,
            passages: passages,
            notify: notify,
            send: send,
            tell: tell
        )
        return try await lines.exchange(message, awaiting: id, limits: limits, admission, listener)
    }

    /// Whether what was met can still be spoken to as it was met.
    func isStanding(_ known: ServerInfo, _ passages: [AuthorizedRoute]) async -> Bool {
        guard known.place == .lines else { return true }
        return await lines?.isStanding(by: passages) ?? false
    }

    /// Greets a server on a stream of its own, which is kept.
    ///
    /// - Returns: Nil when it answers with something else than messages in lines.
    /// - Throws: `Trouble`; `lost` and `silent` where nothing came that shows what it is.
    func meetOverLines(_ passages: [AuthorizedRoute]) async throws -> ServerInfo? {
        let (connection, _, _) = try await connect(passages, mayKeep: false)
        let others = UpstreamMessageHandler(nil, line: self, passages: passages, notify: nil, send: send, tell: tell)
        lines = LineTransport(connection, clock: clock, heed: others)
        beginTidying()
        do {
            let met = try await greet(passages)
            if met == nil { lines = nil }
            return met
        } catch {
            lines = nil
            throw error
        }
    }

    /// MCP 2026-07-28, stdio, backward compatibility: any error, and silence, say that a server is of an earlier era.
    private func greet(_ passages: [AuthorizedRoute]) async throws -> ServerInfo? {
        var isHeard = false
        let answer: UpstreamResponse
        do {
            do {
                let discovered = try await say(ServerInfo.discoveryRequest, passages, .greeting)
                isHeard = true
                if case .success(let result)? = discovered.outcome,
                    let met = ServerInfo(discovery: result, at: .lines)
                {
                    return met
                }
            } catch Trouble.silent {}
            // One that speaks MCP may ask a person first whether we may come in.
            answer = try await say(ServerInfo.handshake(), passages, isHeard ? limits : .introduction)
        } catch Trouble.unclear where !isHeard {
            return nil
        } catch Trouble.lost where isHeard {
            // Not to be tried again four times a second: that person would be asked each time.
            throw Trouble.unclear("the end of the connection as soon as it is greeted")
        }
        guard case .success(let result)? = answer.outcome else { return nil }
        let met = try ServerInfo(handshake: result, at: .lines, sessionID: nil)
        let done = RPCMessage.notification(RPCNotification(method: "notifications/initialized"))
        _ = try await exchange(done.json, at: .lines, [], passages, awaiting: nil, limits: .introduction)
        return met
    }

    private func say(_ request: RPCRequest, _ passages: [AuthorizedRoute], _ limits: UpstreamLimits) async throws
        -> UpstreamResponse
    {
        let message = RPCMessage.request(request).json
        return try await exchange(message, at: .lines, [], passages, awaiting: request.id, limits: limits)
    }
}
