import HTTPTypes
import Model

/// Agents' addresses: the third part of the table.
extension RouteTable {
    static let agents: [APIRoute] =
        door("/mcp", "The broker's own tools", MCPRoutes.broker)
        + door("/e/{id}/mcp", "An app's own tools", MCPRoutes.app)
        + door("/all/mcp", "The tools of all apps together, where it is switched on", MCPRoutes.all) + [
            APIRoute(
                .get,
                "/v1/endpoints/{id}/tools",
                .scope(.endpointCall),
                "What an app can do, from the cache while it is away",
                gives: "ToolList",
                MCPRoutes.tools
            ),
            APIRoute(
                .post,
                "/v1/endpoints/{id}/call",
                .scope(.endpointCall),
                "Call a tool of an app",
                takes: "ToolCallRequest",
                gives: "ToolAnswer",
                creates: false,
                MCPRoutes.call
            ),
            APIRoute(
                .get,
                "/v1/artifacts/{sha}",
                .holder,
                "What a result links to as patchbay://artifact/{sha}, for an hour",
                gives: "file",
                ArtifactRoutes.show
            ),
            APIRoute(
                .get,
                "/mcp/server-card",
                .holder,
                "What is at /mcp (experimental)",
                gives: "ServerCard",
                ServerCardRoutes.broker
            ),
            APIRoute(
                .get,
                "/e/{id}/mcp/server-card",
                .scope(.registryRead),
                "What is at an app's address (experimental)",
                gives: "ServerCard",
                ServerCardRoutes.app
            ),
            APIRoute(
                .get,
                "/.well-known/ai-catalog.json",
                .scope(.registryRead),
                "Every server card (experimental)",
                gives: "Catalog",
                ServerCardRoutes.catalog
            ),
        ]

    /// Streamable HTTP in every revision. What a scope allows, the server behind it looks at.
    private static func door(_ path: String, _ what: String, _ handler: @escaping APIRoute.Handler) -> [APIRoute] {
        [
            APIRoute(
                .post,
                path,
                .holder,
                "\(what): one MCP message",
                takes: "MCPMessage",
                gives: "MCPMessage",
                creates: false,
                handler
            ),
            APIRoute(.get, path, .holder, "\(what): the stream of a session", gives: "events", handler),
            APIRoute(.delete, path, .holder, "\(what): end a session", handler),
        ]
    }
}
