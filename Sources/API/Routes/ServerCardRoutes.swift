import AccessControl
import Apps
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import Registry

/// Server cards and their catalog (SEP-2127, the extension experimental-ext-server-card as of July 2026). Both are
/// experimental.
///
/// The only text of an app or of the network in these documents is the endpoint's ID.
enum ServerCardRoutes {
    private static let cardType = "application/mcp-server-card+json"
    private static let catalogType = "application/ai-catalog+json"

    /// Returns the media type of a server card or of the catalog.
    static func type(of document: String?) -> String { document == "Catalog" ? catalogType : cardType }

    @Sendable static func broker(_ request: APIRequest) async throws -> APIResponse {
        let card = card(
            "broker",
            description: "Finds running apps and calls their tools",
            path: "/mcp",
            request: request
        )
        return request.cacheableJSON(card, contentType: cardType)
    }

    @Sendable static func app(_ request: APIRequest) async throws -> APIResponse {
        let id = try await request.endpoint().id.text
        return request.cacheableJSON(
            card(id, description: "The tools of one running app", path: "/e/\(id)/mcp", request: request),
            contentType: cardType
        )
    }

    @Sendable static func catalog(_ request: APIRequest) async throws -> APIResponse {
        let endpoints = request.visible(await request.services.endpoints.endpoints)
        let described = Set(request.services.profiles.profiles.map(\.name))
        let ids = endpoints.filter { hasTools($0, described) }.map(\.id.text)
        let entries =
            [entry("broker", path: "/mcp", request: request)]
            + ids.map { entry($0, path: "/e/\($0)/mcp", request: request) }
        return request.cacheableJSON(["specVersion": "1.0", "entries": .array(entries)], contentType: catalogType)
    }

    /// Returns whether `/e/{id}/mcp` may have tools for an endpoint. Profiles describe kinds that speak no MCP themselves.
    static func hasTools(_ endpoint: Endpoint, _ profiles: Set<String>) -> Bool {
        endpoint.state != .blocked && (profiles.contains(endpoint.kind.text) || !endpoint.isTunnelOnly)
    }

    private static func card(_ name: String, description: String, path: String, request: APIRequest) -> JSON {
        [
            "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
            "name": .string("local.patchbay/\(name)"),
            "description": .string(description),
            "version": .string(Version.text),
            "remotes": [
                [
                    "type": "streamable-http", "url": .string(address(path, request)),
                    "supportedProtocolVersions": .array(
                        ProtocolVersion.allCases.reversed().map { .string($0.rawValue) }
                    ),
                ]
            ],
        ]
    }

    private static func entry(_ name: String, path: String, request: APIRequest) -> JSON {
        [
            "identifier": .string("urn:air:patchbay.local:mcp:\(name)"), "type": .string(cardType),
            "url": .string("\(address(path, request))/server-card"),
        ]
    }

    /// Returns a URL with the host that the client used. `RequestValidator` has accepted that host. Remote clients use TLS.
    private static func address(_ path: String, _ request: APIRequest) -> String {
        let scheme = request.principal.isRemote ? "https" : "http"
        return "\(scheme)://\(request.httpRequest.head.authority ?? "localhost")\(path)"
    }
}

extension APIRequest {
    /// Returns a document that clients may keep and have to revalidate with its entity tag (RFC 9110, section 13.1.2).
    ///
    /// Caches that clients share must not keep the document, because it depends on the grant.
    fileprivate func cacheableJSON(_ json: JSON, contentType: String) -> APIResponse {
        let tag = "\"\(Artifact.sha(of: json.bytes))\""
        let headers: HTTPFields = [.eTag: tag, .cacheControl: "private, no-cache"]
        if knows(entityTag: tag) { return .response(Response(status: .notModified, headers: headers)) }
        return .body(ByteBuffer(bytes: json.bytes), type: contentType, headers: headers)
    }

    /// Returns whether the client has the response with this entity tag already.
    func knows(entityTag tag: String) -> Bool {
        RequestValidator.values(of: "If-None-Match", in: httpRequest.head)
            .flatMap { $0.filter { $0 != " " }.split(separator: ",") }
            .contains { ["*", tag[...], "W/\(tag)"].contains($0) }
    }
}
