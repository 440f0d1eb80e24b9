package import AccessControl
import JSON
package import Model

/// The result of an identity check on a route.
enum IdentityReport: Sendable {
    /// The server's name and the app's version.
    case server(SanitizedText, version: SanitizedText?)
    /// Another app than the expected one.
    case mismatch(Route, found: SanitizedText)
}

/// Identity queries to an AppReveal server, on separate connections.
package struct IdentityProbe: Sendable {
    /// `GET /health`, which needs no token; nil without a response.
    let health: @Sendable (Route) async -> ServerIdentity?
    /// The tool `launch_context`, with the app's token; nil without a response.
    let launch: @Sendable (Route, EndpointSecret?) async -> ServerIdentity?

    package init(
        health: @escaping @Sendable (Route) async -> ServerIdentity?,
        launch: @escaping @Sendable (Route, EndpointSecret?) async -> ServerIdentity?
    ) {
        self.health = health
        self.launch = launch
    }

    /// A probe that sends nothing.
    package static let none = IdentityProbe(health: { _ in nil }, launch: { _, _ in nil })
}

/// Verifies the server's identity before the first call of a connection epoch.
///
/// Another app may listen on an approved address after the approved app has quit. An epoch lasts while requests are in
/// flight, and for `freshness` after the last response. Many servers close the connection after each response.
extension UpstreamSession {
    static let freshness = Duration.milliseconds(250)

    /// Indicates whether the identity check is still valid.
    var isFresh: Bool {
        if inFlightCount > 0 || connected?.server.transport == .lines { return true }
        return lastResponse.map { watch.elapsed - $0 < Self.freshness } ?? false
    }

    /// Verifies an AppReveal server. The token is not sent to a server that contradicts the expected identity in its
    /// answer without a token.
    ///
    /// - Throws: `UpstreamError.mismatch`; `.tokenRequired` if the token belongs to another launch than the answering
    ///   one.
    func identify(_ endpoint: Endpoint, _ routes: [AuthorizedRoute]) async throws {
        guard endpoint.kind == .appreveal, let route = routes.first,
            let health = await probe.health(route.route)
        else { return }
        let listed = endpoint.routes.first { $0.route == route.route }
        let expected = listed.flatMap { $0.appIsBundleID ? $0.app : nil } ?? endpoint.server
        // Without a token to protect, the app itself is queried below.
        if health.kind != .appreveal, route.secret != nil {
            try await reportMismatch(route.route, SanitizedText("a server that is not AppReveal"))
        }
        if route.secret != nil, let answering = health.launchID, let expected = listed?.launchID, answering != expected
        {
            throw UpstreamError.tokenRequired(.outdated)
        }
        var identity: ServerIdentity? = health
        try await compare(health.app, with: expected, on: route.route)
        if health.app == nil { identity = await probe.launch(route.route, route.secret) }
        guard let app = identity?.app else { return }
        try await compare(app, with: expected, on: route.route)
        if endpoint.server != app { await onIdentify(.server(app, version: identity?.version)) }
    }

    /// Compares the name in an MCP server's `serverInfo` with the first known name. Queries a known server again,
    /// unless it has sessions: another server answers 404 to the session ID.
    ///
    /// - Throws: `UpstreamError`.
    func compareName(of server: ServerInfo, isNew: Bool, _ endpoint: Endpoint, _ routes: [AuthorizedRoute])
        async throws
    {
        guard endpoint.kind != .appreveal, let route = routes.first?.route else { return }
        var info = server.info
        if !isNew {
            guard server.sessionID == nil else { return }
            let isStateless = server.protocolVersion.isStateless
            let request = isStateless ? ServerInfo.discoveryRequest : ServerInfo.handshake(for: clientParameters)
            let response = try await exchange(
                RPCMessage.request(request).json,
                at: server.transport,
                headers: isStateless ? server.headers(for: request.method, [:]) : [],
                by: routes,
                awaiting: request.id,
                limits: limits
            )
            if let failure = Self.rejection(of: response, by: routes) { throw failure }
            guard case .success(let result)? = response.outcome else { return }
            info = (result["serverInfo"] ?? result["_meta"]?["io.modelcontextprotocol/serverInfo"])?.object ?? [:]
        }
        guard let name = info["name"]?.string.map({ SanitizedText($0) }), !name.isEmpty else { return }
        try await compare(name, with: endpoint.server, on: route)
        if endpoint.server != name {
            await onIdentify(.server(name, version: info["version"]?.string.map { SanitizedText($0) }))
        }
    }

    private func compare(_ found: SanitizedText?, with expected: SanitizedText?, on route: Route) async throws {
        if let found, let expected, found != expected { try await reportMismatch(route, found) }
    }

    private func reportMismatch(_ route: Route, _ found: SanitizedText) async throws {
        invalidate()
        await onIdentify(.mismatch(route, found: found))
        throw UpstreamError.mismatch(route, found: found)
    }
}
