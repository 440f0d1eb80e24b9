import AccessControl
import Model
import SystemIO

/// Sends each message as an HTTP request to one path, over a pooled or a new connection.
struct HTTPTransport: UpstreamTransport {
    let path: String
    let pool: ConnectionPool

    func isUsable(over routes: [AuthorizedRoute]) async -> Bool { true }

    func exchange(
        _ message: UpstreamMessage,
        by routes: [AuthorizedRoute],
        handler: UpstreamMessageHandler
    ) async throws -> UpstreamResponse {
        var (mayReuse, limits) = (message.mayReuse, message.limits)
        let end = pool.watch.elapsed + limits.total
        while true {
            let (connection, route, isPooled) = try await pool.open(routes, mayReuse: mayReuse, within: limits.total)
            // The connection may lead to another launch than the one that was looked up.
            guard await route.leadsToLaunch() else { throw AppError.permissionChanged }
            limits.total = end - pool.watch.elapsed
            var exchange = HTTPExchange(
                message.request(to: path, secret: route.secret),
                over: connection,
                limits: limits,
                clock: pool.clock,
                watch: pool.watch,
                delay: { handler.delay },
                reserve: { [pool] in try await pool.reserve($0, for: $1, over: $2, within: $3) },
                opened: message.opened
            )
            do {
                var response = try await exchange.response(
                    to: message.id,
                    by: message.admission?.permission,
                    decoder: ServerMessageDecoder(redactor: handler.redactor, record: { [pool] in pool.record($0) }),
                    onMessage: handler.handle
                )
                await pool.add(PooledConnection(connection, rest: exchange.parser, since: pool.watch.elapsed))
                response.redirect = RedirectTarget(
                    status: response.status,
                    location: response.location,
                    host: route.route.hostHeader,
                    current: path
                )
                return response
            } catch let failure as AppError where isPooled && failure == .unwritten {
                // The app closed the pooled connection; a new one shows whether the app is reachable.
                mayReuse = false
            }
        }
    }
}

extension UpstreamMessage {
    /// Returns the request of Streamable HTTP.
    fileprivate func request(to path: String, secret: EndpointSecret?) -> AppHTTPRequest {
        let (method, accept) =
            if isSessionDelete { ("DELETE", "application/json") } else if json == nil {
                ("GET", "text/event-stream")
            } else {
                ("POST", "application/json, text/event-stream")
            }
        return AppHTTPRequest(
            method,
            path,
            accept: accept,
            secret: secret?.reveal(),
            headers: headers + (trace?.headers ?? []),
            // The line feed makes a server with a line transport answer, which identifies it.
            body: json.map { $0.bytes + [0x0A] }
        )
    }
}
