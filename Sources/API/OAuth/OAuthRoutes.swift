import AccessControl
import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore

/// OAuth 2.1 for the MCP servers: metadata, registration, the page of the consent, and tokens. `OAuthService` decides.
enum OAuthRoutes {
    /// The maximum size of a body in bytes.
    private static let maxBody = 16 * 1_024

    /// The metadata of an MCP server (RFC 9728). The root has none: it is no MCP server, and clients refuse the metadata of
    /// another resource (section 3.3), but go on after 404.
    @Sendable static func resource(_ request: APIRequest) async throws -> APIResponse {
        let issuer = try issuer(of: request)
        let resource = request.httpRequest.uri.path.dropFirst(OAuthIssuer.metadataPath(of: "").count)
        return .json([
            "resource": .string(issuer + resource),
            "authorization_servers": [.string(issuer)],
            "scopes_supported": .strings(OAuthService.defaultScopes),
            "bearer_methods_supported": ["header"],
            "resource_name": "Patchbay",
        ])
    }

    /// The metadata of the authorization server (RFC 8414, RFC 7009, RFC 7636, RFC 9207).
    @Sendable static func server(_ request: APIRequest) async throws -> APIResponse {
        let issuer = try issuer(of: request)
        return .json([
            "issuer": .string(issuer),
            "authorization_endpoint": .string("\(issuer)/oauth/authorize"),
            "token_endpoint": .string("\(issuer)/oauth/token"),
            "registration_endpoint": .string("\(issuer)/oauth/register"),
            "revocation_endpoint": .string("\(issuer)/oauth/revoke"),
            "scopes_supported": .strings(OAuthService.scopes),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": .bool(request.services.clientDocuments != nil),
        ])
    }

    /// Registers a client (RFC 7591). Every client is a public one, whatever it asks for.
    @Sendable static func register(_ request: APIRequest) async throws -> APIResponse {
        let body = try await json(of: request)
        let redirects = (body["redirect_uris"]?.array ?? []).compactMap(\.string)
        let client = try request.services.accessStore.oauth.register(
            name: body["client_name"]?.string,
            redirectURIs: redirects
        )
        let document: JSON = [
            "client_id": .string(client.id),
            "client_name": .string(client.name.text),
            "redirect_uris": .strings(client.redirectURIs),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        ]
        return .json(document, status: .created)
    }

    /// Shows the page of the consent, which is the same for every request. Its script sends the query to `begin`. So a
    /// preview of the link asks no owner, and the text of a client is never part of a document.
    @Sendable static func page(_ request: APIRequest) async throws -> APIResponse {
        DashboardRoutes.page(DashboardPage.shared.consent, caching: "no-cache", for: request)
    }

    /// Asks the owners for the access that a client wants.
    @Sendable static func begin(_ request: APIRequest) async throws -> APIResponse {
        let query = try await json(of: request)["query"]?.string ?? ""
        let parameters = try FormEncoding.parameters(of: query.drop { $0 == "?" })
        let issuer = try issuer(of: request)
        let (created, secret) = try await request.services.accessStore.oauth.begin(
            parameters,
            issuer: issuer,
            from: request.principal.source,
            user: request.principal.user,
            documents: request.services.clientDocuments
        )
        return try .created(ConsentRequest(request: created, secret: secret))
    }

    /// Returns the state of a request, and after the answer of an owner the address to which the page goes.
    @Sendable static func answer(_ request: APIRequest) async throws -> APIResponse {
        let secret = try await json(of: request)["secret"]?.string ?? ""
        let document: JSON =
            switch try await request.services.accessStore.oauth.answer(for: secret) {
            case .waiting: ["state": "waiting"]
            case .expired: ["state": "expired"]
            case .answered(let location): ["state": "answered", "location": .string(location)]
            }
        return .json(document)
    }

    /// Gives tokens for a code or a refresh token.
    @Sendable static func token(_ request: APIRequest) async throws -> APIResponse {
        let tokens = try await request.services.accessStore.oauth.tokens(
            for: try await form(of: request),
            from: request.principal.source
        )
        return .json([
            "access_token": .string(tokens.access.reveal()),
            "token_type": "Bearer",
            "expires_in": .number(JSONNumber(tokens.lifetime)),
            "refresh_token": .string(tokens.refresh.reveal()),
            "scope": .string(tokens.grant.permissions.scopes.sorted().map(\.rawValue).joined(separator: " ")),
        ])
    }

    /// Ends the grant of a token (RFC 7009).
    @Sendable static func revoke(_ request: APIRequest) async throws -> APIResponse {
        let token = try await form(of: request)["token"] ?? ""
        try await request.services.accessStore.oauth.revoke(token, from: request.principal.source)
        return .response(Response(status: .ok))
    }

    private static func issuer(of request: APIRequest) throws(Problem) -> String {
        guard let issuer = request.issuer else { throw OAuthProblem.unsupported }
        return issuer.text
    }

    private static func json(of request: APIRequest) async throws -> JSON {
        try request.requireJSON()
        let bytes = try await request.collect(upTo: maxBody).readableBytesView
        do { return try JSON(parsing: Array(bytes)) } catch {
            throw OAuthError(.invalidRequest, "the body is not JSON")
        }
    }

    private static func form(of request: APIRequest) async throws -> [String: String] {
        let bytes = try await request.collect(upTo: maxBody).readableBytesView
        return try FormEncoding.parameters(of: String(decoding: bytes, as: UTF8.self))
    }
}

/// The request that the page of the consent shows, and the secret with which the page asks for the answer.
private struct ConsentRequest: Encodable {
    let request: AccessRequest
    let secret: String
}

extension JSON {
    fileprivate static func strings(_ texts: [String]) -> JSON { .array(texts.map(JSON.string)) }
}

extension OAuthError {
    /// The error as its client expects it (RFC 6749, section 5.2).
    var response: APIResponse {
        .json(
            ["error": .string(code.rawValue), "error_description": .string(description)],
            status: code == .invalidClient ? .unauthorized : .badRequest
        )
    }
}

extension RouteTable {
    /// The routes of OAuth, which only `api.oauth` adds, on the listeners for browsers. `openapi.json` lacks them,
    /// because clients read the metadata instead.
    static let oauth = oauthRows.map { $0.of(.document) }

    // swift-format-ignore
    private static let oauthRows: [APIRoute] = [
        .get("/.well-known/oauth-protected-resource/mcp", .public, "Describe /mcp", returns: "file", OAuthRoutes.resource),
        .get("/.well-known/oauth-protected-resource/all/mcp", .public, "Describe /all/mcp", returns: "file",
            OAuthRoutes.resource),
        .get("/.well-known/oauth-protected-resource/e/{id}/mcp", .public, "Describe an app's MCP server", returns: "file",
            OAuthRoutes.resource),
        .get("/.well-known/oauth-authorization-server", .public, "Describe OAuth", returns: "file", OAuthRoutes.server),
        .post("/oauth/register", .public, "Register a client", OAuthRoutes.register),
        .get("/oauth/authorize", .public, "Show the page of the consent", returns: "file", OAuthRoutes.page),
        .post("/oauth/requests", .public, "Ask the owners", OAuthRoutes.begin),
        .post("/oauth/requests/answer", .public, "Show the answer of the owners", OAuthRoutes.answer),
        .post("/oauth/token", .public, "Give tokens", OAuthRoutes.token),
        // Clients that have lost the metadata in a restart renew their tokens here (MCP 2025-03-26, fallback endpoints).
        .post("/token", .public, "Give tokens", OAuthRoutes.token),
        .post("/oauth/revoke", .public, "End a grant", OAuthRoutes.revoke),
    ]
}
