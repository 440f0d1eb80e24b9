import AccessControl
import JSON
import Model
import SystemIO

/// Sends single messages to the app over pooled or new connections.
extension UpstreamSession {
    /// Sends the app a message that has no response.
    func notify(_ message: RPCMessage, by routes: [AuthorizedRoute]) async throws {
        guard let server = connected?.server else { return }
        let (method, params): (String, JSONObject) =
            if case .notification(let notification) = message {
                (notification.method, notification.params ?? [:])
            } else { ("", [:]) }
        _ = try await exchange(
            message.json,
            at: server.transport,
            headers: server.headers(for: method, params),
            by: routes,
            awaiting: nil,
            limits: .handshake,
            mayReuse: false
        )
    }

    /// Sends one message over a pooled or a new connection.
    ///
    /// The app may be closing a pooled connection at that moment, which makes the delivery uncertain. Messages that
    /// must not be delivered twice therefore use a new connection.
    func exchange(
        _ message: JSON?,
        at transport: UpstreamTransport,
        headers: [(name: String, value: String)],
        by routes: [AuthorizedRoute],
        awaiting id: RPCID?,
        limits: UpstreamLimits,
        admission: Admission? = nil,
        mayReuse: Bool = true,
        isSessionDelete: Bool = false,
        forwarder: ClientRequestForwarder? = nil,
        opened: (@Sendable () -> Void)? = nil,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) async throws -> UpstreamResponse {
        guard case .http(let path) = transport else {
            return try await exchangeLines(
                message,
                by: routes,
                awaiting: id,
                limits: limits,
                admission: admission,
                notify: notify
            )
        }
        var (mayReuse, limits) = (mayReuse, limits)
        let end = watch.elapsed + limits.total
        while true {
            let (connection, route, isPooled) = try await openConnection(
                routes,
                mayReuse: mayReuse,
                within: limits.total
            )
            limits.total = end - watch.elapsed
            let httpRequest = UpstreamHTTPRequest(
                path: path,
                route: route.route,
                secret: route.secret,
                headers: headers,
                message: message,
                isSessionDelete: isSessionDelete
            )
            let handler = UpstreamMessageHandler(
                id,
                session: self,
                routes: routes,
                forwarder: { [forwarders] in forwarder ?? (id == nil ? forwarders.common : nil) },
                notify: notify,
                schedule: schedule,
                onChange: onChange
            )
            var roundTrip = UpstreamRoundTrip(
                awaiting: id,
                limits: limits,
                clock: clock,
                watch: watch,
                redactor: TokenRedactor(routes),
                pause: { [forwarders] in
                    forwarders.pause.merged(with: forwarder?.pause ?? ClientRequestForwarder.Pause())
                },
                opened: opened
            ) { handler.handle($0) }
            do {
                let response = try await roundTrip.run(httpRequest.bytes, over: connection, by: admission)
                let pooled = PooledConnection(connection, rest: roundTrip.rest, since: watch.elapsed)
                if pooled.mayBecomeReusable { pool(pooled) }
                return response
            } catch let failure as UpstreamError where isPooled && failure == .unwritten {
                // The app closed the pooled connection; a new one shows whether the app is reachable.
                mayReuse = false
            }
        }
    }

    /// The longest dial time per route, in seconds. A shorter limit of the caller is enforced separately.
    private static let dialLimit = Duration.seconds(5)

    private func openConnection(
        _ routes: [AuthorizedRoute],
        mayReuse: Bool,
        within limit: Duration
    ) async throws -> (UpstreamConnection, AuthorizedRoute, isPooled: Bool) {
        guard limit < Self.dialLimit * routes.count else { return try await openConnection(routes, mayReuse: mayReuse) }
        let connected = try await withTimeout(limit, clock: clock) {
            try await self.openConnection(routes, mayReuse: mayReuse)
        }
        guard let connected else {
            throw UpstreamError.unreachable(DialError(.timedOut, "\(id) was not reached within \(limit)"))
        }
        return connected
    }

    /// Returns a pooled connection to the first route, or dials the routes in order.
    func openConnection(
        _ routes: [AuthorizedRoute],
        mayReuse: Bool
    ) async throws -> (UpstreamConnection, AuthorizedRoute, isPooled: Bool) {
        if mayReuse, let route = routes.first {
            while var pooled = idleConnections.popLast() {
                guard pooled.connection.route == route.route, watch.elapsed - pooled.since < PooledConnection.lifetime
                else {
                    continue
                }
                if let connection = pooled.takeIfReady() { return (connection, route, true) }
            }
        }
        var failures: [DialError] = []
        for route in routes {
            do {
                let connection = try await dialer.dial(route.route)
                guard connection.initialBytes.isEmpty else { throw UpstreamError.notMCP }
                return (UpstreamConnection(over: route.route, connection), route, false)
            } catch let failure as DialError {
                failures.append(failure)
            }
            try Task.checkCancellation()
        }
        throw UpstreamError.unreachable(failures.first ?? DialError(.noRoute, "\(id) has no route now"))
    }

    /// Closes connections with an idle time above the limit.
    ///
    /// - Returns: Whether connections are left that must be checked again.
    func closeIdle() async -> Bool {
        if let stream = lineTransport, await !stream.shouldStayOpen(), lineTransport === stream { lineTransport = nil }
        let now = watch.elapsed
        idleConnections.removeAll { now - $0.since >= PooledConnection.lifetime }
        isClosingIdle = !idleConnections.isEmpty || lineTransport != nil
        return isClosingIdle
    }

    /// Adds an idle connection to the pool.
    func pool(_ connection: PooledConnection) {
        idleConnections.append(connection)
        scheduleCloseIdle()
    }

    /// Starts the background task that closes idle connections, unless one is running.
    func scheduleCloseIdle() {
        guard !isClosingIdle else { return }
        isClosingIdle = true
        schedule(.closeIdle(self))
    }
}

/// Interprets responses.
extension UpstreamSession {
    /// The error for an endpoint without routes.
    static func noRoute(to endpoint: Endpoint) -> DialError {
        DialError(.noRoute, "\(endpoint.id) has no route now; start the app, or see `patchbay show \(endpoint.id)`")
    }

    /// Describes how a response shows that the server has lost the state of the handshake.
    enum Staleness: Hashable, Sendable {
        /// The protocol says that the request was not processed.
        case notProcessed
        /// The error message suggests a lost session. The request may have been processed.
        case possiblyProcessed
    }

    /// Returns how a response shows lost handshake state; nil if the response is normal.
    static func staleness(of response: UpstreamResponse, _ server: ServerInfo) -> Staleness? {
        // MCP 2025-03-26 and later, session management: 404 requires a new session.
        if response.status == 404, server.sessionID != nil { return .notProcessed }
        guard response.status == 400, case .failure(let error)? = response.outcome else { return nil }
        // HeaderMismatch and UnsupportedProtocolVersion of 2026-07-28; earlier servers only say in the message which
        // part is missing.
        if error.code == -32_020 || error.code == -32_022 { return .notProcessed }
        let message = error.message.lowercased()
        return ["session", "_meta", "protocol"].contains { message.contains($0) } ? .possiblyProcessed : nil
    }

    /// Converts a response to a result.
    ///
    /// - Throws: `UpstreamError`.
    static func appReply(from response: UpstreamResponse, by routes: [AuthorizedRoute]) throws(UpstreamError)
        -> AppReply
    {
        if let failure = rejection(of: response, by: routes) { throw failure }
        switch response.outcome {
        case .success(let result)?:
            guard let object = result.object else { throw .invalidResponse("a result that is not an object") }
            return AppReply(outcome: .success(object), size: response.size, permit: response.permit)
        case .failure(let error)?: return AppReply(outcome: .failure(error), size: response.size)
        case nil: throw .invalidResponse("status \(response.status)")
        }
    }

    /// Returns the error that the status alone implies.
    static func rejection(of response: UpstreamResponse, by routes: [AuthorizedRoute]) -> UpstreamError? {
        switch response.status {
        case 401: .tokenRequired(routes.contains { $0.secret != nil } ? .rejected : .missing)
        case 300..<400: .invalidResponse("a redirect, which is not followed")
        default: nil
        }
    }

    /// Returns whether the app may still be processing a request that failed with this error.
    static func mayStillRun(_ error: any Error) -> Bool {
        if case UpstreamError.timedOut = error { return true }
        return error is CancellationError
    }
}

/// The app's response to one message.
struct UpstreamResponse: Sendable {
    let status: Int
    /// The value of `Mcp-Session-Id`, if it can be sent back.
    let sessionID: String?
    /// Nil for a notification, and for a response without a body.
    let outcome: Result<JSON, RPCError>?
    /// The size of the body in bytes.
    let size: Int
    /// Held while the unmodified large response is in memory; nil for a small response.
    var permit: Permit?
}

/// The app's response to a request: a result or the app's own error.
struct AppReply: Sendable {
    let outcome: Result<JSONObject, RPCError>
    /// The size in bytes.
    let size: Int
    /// Held until the large result has been reduced; nil for a small one.
    var permit: Permit?
}
