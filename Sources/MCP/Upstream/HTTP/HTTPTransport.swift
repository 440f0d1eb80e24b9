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
            let request = UpstreamHTTPRequest(
                path: path,
                route: route.route,
                secret: route.secret,
                headers: message.headers,
                message: message.json,
                isSessionDelete: message.isSessionDelete
            )
            var roundTrip = UpstreamRoundTrip(
                awaiting: message.id,
                limits: limits,
                clock: pool.clock,
                watch: pool.watch,
                decoder: ServerMessageDecoder(redactor: handler.redactor, record: { [pool] in pool.record($0) }),
                delay: { handler.delay },
                reserve: { [pool] in try await pool.reserve($0, for: $1, over: $2, within: $3) },
                opened: message.opened
            ) { handler.handle($0) }
            do {
                var response = try await roundTrip.run(request.bytes, over: connection, by: message.admission)
                await pool.add(PooledConnection(connection, rest: roundTrip.rest, since: pool.watch.elapsed))
                response.redirect = RedirectTarget(
                    status: response.status,
                    location: response.location,
                    host: UpstreamHTTPRequest.host(of: route.route),
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
