package import AccessControl
package import Model

/// The result of an identity check on a route.
enum IdentityReport: Hashable, Sendable {
    /// The server's name and the app's version.
    case server(SanitizedText, version: SanitizedText?)
    /// Another app than the expected one.
    case mismatch(Route, found: SanitizedText)
}

/// Identity queries to an AppReveal server, on separate connections.
package struct IdentityProbe: Sendable {
    /// `GET /health`, which needs no token; nil without a response.
    package let health: @Sendable (Route) async -> ServerIdentity?
    /// The tool `launch_context`, with the app's token if the connection leads to its launch; nil without a response.
    package let launch: @Sendable (AuthorizedRoute) async -> ServerIdentity?

    package init(
        health: @escaping @Sendable (Route) async -> ServerIdentity?,
        launch: @escaping @Sendable (AuthorizedRoute) async -> ServerIdentity?
    ) {
        self.health = health
        self.launch = launch
    }

    /// A probe that sends nothing.
    package static let none = IdentityProbe(health: { _ in nil }, launch: { _ in nil })
}

/// Verifies the identity of the server behind an approved address.
///
/// Another app may listen on an approved address after the approved app has quit. The methods return a report of a new
/// name, and nil if there is no news.
struct IdentityVerifier: Sendable {
    let probe: IdentityProbe

    /// Verifies an AppReveal server. The token is not sent to a server that contradicts the expected identity in its
    /// answer without a token.
    ///
    /// - Throws: `AppError.mismatch`; `.tokenRequired` if the token belongs to another launch than the answering
    ///   one.
    func verify(_ endpoint: Endpoint, by routes: [AuthorizedRoute]) async throws(AppError) -> IdentityReport? {
        guard endpoint.kind == .appreveal, let route = routes.first,
            let health = await probe.health(route.route)
        else { return nil }
        let listed = endpoint.routes.first { $0.route == route.route }
        let expected = listed.flatMap { $0.appIsBundleID ? $0.app : nil } ?? endpoint.server
        // Without a token to protect, the app itself is queried below.
        if health.kind != .appreveal, route.secret != nil {
            throw .mismatch(route.route, found: SanitizedText("a server that is not AppReveal"))
        }
        if route.secret != nil, let expected = route.observation?.launchID ?? listed?.launchID,
            let answering = health.launchID, answering != expected
        {
            throw .tokenRequired(.outdated)
        }
        var identity: ServerIdentity? = health
        try Self.compare(health.app, with: expected, on: route.route)
        if health.app == nil { identity = await probe.launch(route) }
        guard let app = identity?.app else { return nil }
        try Self.compare(app, with: expected, on: route.route)
        return endpoint.server == app ? nil : .server(app, version: identity?.version)
    }

    /// Compares the name in an MCP server's `serverInfo` with the first known name.
    ///
    /// - Throws: `AppError.mismatch`.
    func verify(_ info: JSONObject, of endpoint: Endpoint, on route: Route) throws(AppError) -> IdentityReport? {
        guard let name = info["name"]?.string.map({ SanitizedText($0) }), !name.isEmpty else { return nil }
        try Self.compare(name, with: endpoint.server, on: route)
        return endpoint.server == name
            ? nil : .server(name, version: info["version"]?.string.map { SanitizedText($0) })
    }

    private static func compare(_ found: SanitizedText?, with expected: SanitizedText?, on route: Route)
        throws(AppError)
    {
        if let found, let expected, found != expected { throw .mismatch(route, found: found) }
    }
}
