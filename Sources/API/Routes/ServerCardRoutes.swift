import Hummingbird
import JSON
import MCP
import Model
import Registry

/// Server cards and their catalog (SEP-2127, the extension experimental-ext-server-card). Both are experimental.
///
/// The only text of an app or of the network in these documents is the endpoint's ID.
enum ServerCardRoutes {
    private static let cardType = "application/mcp-server-card+json"
    private static let catalogType = "application/ai-catalog+json"

    /// Returns the media type of a server card or of the catalog.
    static func type(of document: String?) -> String { document == "Catalog" ? catalogType : cardType }

    @Sendable static func broker(_ request: APIRequest) async throws -> Response {
        let card = card(
            "broker",
            description: "Finds running apps and calls their tools",
            path: "/mcp",
            request: request
        )
        return request.rawJSON(card, contentType: cardType)
    }

    @Sendable static func app(_ request: APIRequest) async throws -> Response {
        let id = try await request.endpoint().id.text
        return request.rawJSON(
            card(id, description: "The tools of one running app", path: "/e/\(id)/mcp", request: request),
            contentType: cardType
        )
    }

    @Sendable static func catalog(_ request: APIRequest) async throws -> Response {
        let endpoints = request.visible(await request.services.registry.endpoints)
        let mcpEndpoints = endpoints.filter { $0.kind == .appreveal || $0.kind == .mcp }.map(\.id.text)
        let entries =
            [entry("broker", path: "/mcp", request: request)]
            + mcpEndpoints.map { entry($0, path: "/e/\($0)/mcp", request: request) }
        return request.rawJSON(
            ["specVersion": "1.0", "host": ["displayName": "Patchbay"], "entries": .array(entries)],
            contentType: catalogType
        )
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
            "identifier": .string("urn:air:patchbay.local:\(name)"), "displayName": .string(name),
            "type": .string(cardType), "url": .string("\(address(path, request))/server-card"),
        ]
    }

    /// Returns a URL with the host that the client used. `RequestValidator` has accepted that host.
    private static func address(_ path: String, _ request: APIRequest) -> String {
        "http://\(request.httpRequest.head.authority ?? "localhost")\(path)"
    }
}
