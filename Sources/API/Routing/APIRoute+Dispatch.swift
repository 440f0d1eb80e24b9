import AccessControl
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import Transport

extension RouteTable {
    private typealias Paths = [HTTPRequest.Method: [(parts: [Substring], route: APIRoute)]]

    private static let paths = paths(of: all)
    private static let pathsWithOAuth = paths(of: all + oauth)

    private static func paths(of routes: [APIRoute]) -> Paths {
        Dictionary(grouping: routes, by: \.method).mapValues { routes in
            routes.map { (parts: $0.path.split(separator: "/"), route: $0) }
        }
    }

    /// Returns the route of a request, with the parameters of its path.
    ///
    /// - Throws: `Problem` for an unknown path, or a known path with another method.
    static func route(_ method: HTTPRequest.Method, _ path: String, withOAuth: Bool = false) throws(Problem) -> (
        route: APIRoute, parameters: [Substring: Substring]
    ) {
        let parts = path.split(separator: "/")
        let paths = withOAuth ? pathsWithOAuth : paths
        for (pattern, route) in paths[method] ?? [] where matches(parts, pattern) {
            let parameters = zip(pattern, parts).filter { $0.0.hasPrefix("{") }
            return (route, Dictionary(parameters.map { ($0.0.dropFirst().dropLast(), $0.1) }) { first, _ in first })
        }
        throw notFound(method, path, withOAuth: withOAuth)
    }

    private static func matches(_ parts: [Substring], _ pattern: [Substring]) -> Bool {
        parts.count == pattern.count && zip(pattern, parts).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }

    /// The methods that are served at a path.
    static func methods(at path: String, withOAuth: Bool = false) -> [String] {
        let parts = path.split(separator: "/")
        return (withOAuth ? all + oauth : all).filter { matches(parts, $0.path.split(separator: "/")) }.map(
            \.method.rawValue
        )
    }

    private static func notFound(_ method: HTTPRequest.Method, _ path: String, withOAuth: Bool) -> Problem {
        let methods = methods(at: path, withOAuth: withOAuth)
        if methods.isEmpty {
            if !withOAuth, OAuthProblem.isOfOAuth(path) { return OAuthProblem.unsupported }
            return Problem(
                .notFound,
                "there is nothing at \(SanitizedText(path, limit: 200))",
                hint: "GET /openapi.json"
            )
        }
        return Problem(
            .methodNotAllowed,
            "\(SanitizedText(path, limit: 200)) takes \(methods.joined(separator: ", ")), not \(method)"
        )
    }
}

extension APIRoute {
    /// Serves a request: checks the permission and the form, then passes the request to the broker of another host or to
    /// the handler.
    func respond(to request: APIRequest) async throws -> APIResponse {
        // The path `/v1/grants/` matches `/v1/grants`. An empty ID would then mean all grants.
        let requestPath = request.httpRequest.uri.path
        if kind == .resource, requestPath.hasSuffix("/") {
            throw Problem(.notFound, "there is nothing at \(requestPath)", hint: "remove the trailing /")
        }
        try await authorize(request)
        if kind == .resource { try request.requireKnownParameters() }
        if let response = try await request.forward(from: self) { return response }
        if kind == .resource, method != .get, requestSchema == nil { try await request.requireNoMembers() }
        return try await handler(request)
    }

    /// Throws unless the principal may use the route. A request with a grant is aborted if the grant ends before the
    /// response.
    private func authorize(_ request: APIRequest) async throws {
        let (principal, accessStore) = (request.principal, request.services.accessStore)
        do { try authorize(principal) } catch {
            if case .localUser = principal.role {
                try await accessStore.auditDenied("\(method) \(path)", of: principal.actor, from: principal.source)
            }
            throw error
        }
        guard let grant = principal.credential, !survivesGrantRevocation else { return }
        let session = try accessStore.live.register(under: grant.id) {
            [channel = request.channel, pendingResponse = request.pendingResponse] in
            await Self.abort(channel, before: pendingResponse)
        }
        request.cleanup.add { accessStore.live.unregister(session) }
    }

    /// Aborts the connection and discards unsent response bytes (SO_LINGER 0).
    ///
    /// Does nothing if the response is already flushed, because the connection may then serve another client's request.
    /// The check runs on the connection's event loop and therefore cannot race with the end of the write.
    private static func abort(_ channel: any Channel, before pendingResponse: PendingResponse) async {
        if (try? await channel.eventLoop.submit { pendingResponse.isFlushed }.get()) == true { return }
        try? await channel.reset().get()
    }
}
