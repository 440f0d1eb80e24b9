package import AccessControl
import JSON
package import Model

/// What is found out about which app answers on a route.
enum IdentityReport: Sendable {
    /// The name that the server gave itself, and the app's version.
    case server(SanitizedText, version: SanitizedText?)
    /// Another app than the expected one.
    case mismatch(Route, found: SanitizedText)
}

/// The questions that an AppReveal server answers about itself, asked over connections of their own.
package struct IdentityProbe: Sendable {
    /// `GET /health`, which needs no token; nil when it is not answered.
    let health: @Sendable (Route) async -> ServerIdentity?
    /// The tool `launch_context`, with the app's token; nil when it is not answered.
    let launch: @Sendable (Route, EndpointSecret?) async -> ServerIdentity?

    package init(
        health: @escaping @Sendable (Route) async -> ServerIdentity?,
        launch: @escaping @Sendable (Route, EndpointSecret?) async -> ServerIdentity?
    ) {
        self.health = health
        self.launch = launch
    }

    /// Asks nothing.
    package static let none = IdentityProbe(health: { _ in nil }, launch: { _, _ in nil })
}

/// Asking the server who it is, before the first call of a connection epoch.
///
/// Another app may listen on an approved address after the approved one has ended. An epoch lasts while requests are under
/// way, and for `freshness` after the last answer: many servers close the connection after each answer.
extension UpstreamSession {
    static let freshness = Duration.milliseconds(250)

    /// Whether the server is still the one that was asked last.
    var isFresh: Bool {
        if underWay > 0 || introduction?.met.place == .lines { return true }
        return lastHeard.map { watch.elapsed - $0 < Self.freshness } ?? false
    }

    /// Asks an AppReveal server. A server that contradicts without a token gets none.
    ///
    /// - Throws: `Trouble.mismatch`; `.wantsSecret` when the token is for another launch than the one that answers.
    func identify(_ endpoint: Endpoint, _ passages: [AuthorizedRoute]) async throws {
        guard endpoint.kind == .appreveal, let passage = passages.first,
            let health = await probe.health(passage.route)
        else { return }
        let listed = endpoint.routes.first { $0.route == passage.route }
        let expected = listed.flatMap { $0.appIsBundleID ? $0.app : nil } ?? endpoint.server
        // Without a token nothing is at stake yet: the app itself is asked below.
        if health.kind != .appreveal, passage.secret != nil {
            try await contradict(passage.route, SanitizedText("a server that is not AppReveal"))
        }
        if passage.secret != nil, let boot = health.boot, let known = listed?.boot, boot != known {
            throw Trouble.wantsSecret(.outdated)
        }
        var told: ServerIdentity? = health
        try await compare(health.app, with: expected, on: passage.route)
        if health.app == nil { told = await probe.launch(passage.route, passage.secret) }
        guard let app = told?.app else { return }
        try await compare(app, with: expected, on: passage.route)
        if endpoint.server != app { await identified(.server(app, version: told?.version)) }
    }

    /// Compares the name in an MCP server's `serverInfo` with its first one. A server that was met before is asked again, but
    /// for one with sessions: another server answers 404 to its session.
    ///
    /// - Throws: `Trouble`.
    func compareName(of known: ServerInfo, isNew: Bool, _ endpoint: Endpoint, _ passages: [AuthorizedRoute])
        async throws
    {
        guard endpoint.kind != .appreveal, let route = passages.first?.route else { return }
        var info = known.info
        if !isNew {
            guard known.sessionID == nil else { return }
            let isStateless = known.revision.isStateless
            let request = isStateless ? ServerInfo.discoveryRequest : ServerInfo.handshake(for: own)
            let answer = try await exchange(
                RPCMessage.request(request).json,
                at: known.place,
                isStateless ? known.headers(for: request.method, [:]) : [],
                passages,
                awaiting: request.id,
                limits: limits
            )
            if let trouble = Self.refusal(answer, passages) { throw trouble }
            guard case .success(let result)? = answer.outcome else { return }
            info = (result["serverInfo"] ?? result["_meta"]?["io.modelcontextprotocol/serverInfo"])?.object ?? [:]
        }
        guard let name = info["name"]?.string.map({ SanitizedText($0) }), !name.isEmpty else { return }
        try await compare(name, with: endpoint.server, on: route)
        if endpoint.server != name {
            await identified(.server(name, version: info["version"]?.string.map { SanitizedText($0) }))
        }
    }

    private func compare(_ found: SanitizedText?, with expected: SanitizedText?, on route: Route) async throws {
        if let found, let expected, found != expected { try await contradict(route, found) }
    }

    private func contradict(_ route: Route, _ found: SanitizedText) async throws {
        part()
        await identified(.mismatch(route, found: found))
        throw Trouble.mismatch(route, found: found)
    }
}
