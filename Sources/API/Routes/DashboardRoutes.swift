import AccessControl
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore

/// The dashboard: its page at `/`, and the sign-in of owners.
enum DashboardRoutes {
    /// Serves the document. Its address stays the same, so caches ask for each use.
    @Sendable static func index(_ request: APIRequest) async throws -> APIResponse {
        try requirePageListener(request)
        return page(DashboardPage.shared.index, caching: "no-cache", for: request)
    }

    /// Serves another file. Its path contains the hash of all files, so it never changes.
    @Sendable static func file(_ request: APIRequest) async throws -> APIResponse {
        try requirePageListener(request)
        let (hash, name) = (try request.parameter("hash"), try request.parameter("name"))
        guard let file = DashboardPage.shared.file(name, hash: hash) else {
            throw Problem(.notFound, "the page has no such file in this version of the broker", hint: "reload the page")
        }
        return page(file, caching: "public, max-age=31536000, immutable", for: request)
    }

    /// Creates a one-time code with which the browser of this user signs in.
    @Sendable static func createCode(_ request: APIRequest) async throws -> APIResponse {
        // An admin grant must not become a longer session, and a session must not extend itself.
        guard case (.owner, .unix(let user)) = (request.principal.role, request.principal.source) else {
            throw Problem(
                .forbidden,
                "a code for the dashboard is given to an owner on the control socket only, without a token",
                hint: "patchbay dashboard, on the broker's machine and without --broker"
            )
        }
        guard let port = request.services.tcpPort else {
            throw Problem(
                .conflict,
                "the dashboard needs the TCP listener on loopback, which is off: by api.tcp = false, or because "
                    + "another program has its port",
                hint: "set api.tcp = true and a free api.port in the configuration, and restart the broker"
            )
        }
        guard await request.services.owners.includes(user) else {
            throw Problem(
                .forbidden,
                "user \(user) is no member of the group \(OwnerPolicy.groupName) in the user database, so no browser of this "
                    + "user can be an owner",
                hint: "sudo gpasswd -a USER \(OwnerPolicy.groupName)"
            )
        }
        let (code, expiresAt) = try await request.services.accessStore.dashboard.createCode(
            for: user,
            by: request.principal.actor,
            from: request.principal.source
        )
        return try .created(
            DashboardCode(code: code, url: "http://127.0.0.1:\(port)/#code=\(code)", expiresAt: expiresAt)
        )
    }

    /// Exchanges a code for a session. The body is the authentication.
    @Sendable static func createSession(_ request: APIRequest) async throws -> APIResponse {
        guard case .tcp = request.principal.source else {
            throw Problem(
                .forbidden,
                "a code is accepted on the loopback listener only",
                hint: "patchbay dashboard on the broker's machine prints the address, and the ssh command for its port"
            )
        }
        let spec = try await request.body(DashboardSessionSpec.self)
        let (owners, user) = (request.services.owners, request.principal.user)
        var (owner, name): (UInt32?, String) = (nil, "")
        if let user, await owners.includes(user) { (owner, name) = (user, await owners.name(of: user)) }
        do {
            let (grant, token) = try await request.services.accessStore.dashboard.signIn(
                with: spec.code,
                owner: owner,
                name: SanitizedText("Dashboard of \(name)"),
                from: request.principal.source
            )
            return try .created(DashboardSession(token: token.reveal(), grant: grant))
        } catch AccessError.refused {
            throw Problem(
                .unauthorized,
                "the code is wrong, used, older than \(DashboardService.codeLifetime) s, or was given to another user",
                hint: "run patchbay dashboard as the user of the browser"
            )
        }
    }

    /// Throws unless the listener is one for browsers: on loopback, or for remote clients.
    private static func requirePageListener(_ request: APIRequest) throws(Problem) {
        switch request.principal.source {
        case .tcp: return
        case .remote where request.principal.member == nil: return
        case .remote, .unix, .socket, .broker:
            throw Problem(.notFound, "the dashboard is on the TCP listener only", hint: "patchbay dashboard")
        }
    }

    /// Returns a file, compressed for a client that accepts gzip, or the word that the client has it already.
    static func page(_ file: DashboardPage.File, caching: String, for request: APIRequest) -> APIResponse {
        var headers: HTTPFields = [.eTag: file.entityTag, .cacheControl: caching, .vary: "Accept-Encoding"]
        if let name = HTTPField.Name("Content-Security-Policy") {
            headers[name] = DashboardPage.contentSecurityPolicy
        }
        // Without this, a page of another site can learn from a browser's cache whether the browser has used the dashboard.
        if let name = HTTPField.Name("Cross-Origin-Resource-Policy") { headers[name] = "same-origin" }
        if request.knows(entityTag: file.entityTag) {
            return .response(Response(status: .notModified, headers: headers))
        }
        let codings = RequestValidator.values(of: "Accept-Encoding", in: request.httpRequest.head).flatMap {
            $0.split(separator: ",")
        }
        let isCompressed = codings.contains { $0.filter { $0 != " " } == "gzip" }
        if isCompressed { headers[.contentEncoding] = "gzip" }
        return .body(
            ByteBuffer(bytes: isCompressed ? file.compressed : file.bytes),
            type: file.mediaType,
            headers: headers
        )
    }
}
