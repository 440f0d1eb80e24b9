import Hummingbird
import JSON
import MCP
import Model
import Registry

/// Server cards and the catalog of them (SEP-2127, the extension experimental-ext-server-card): experimental, as it is there.
///
/// They have no text of an app's or of the network's but the endpoint's id.
enum ServerCardRoutes {
    private static let cardType = "application/mcp-server-card+json"
    private static let catalogType = "application/ai-catalog+json"

    /// The media type of one of the two documents.
    static func type(of document: String?) -> String { document == "Catalog" ? catalogType : cardType }

    @Sendable static func broker(_ call: APIRequest) async throws -> Response {
        let card = card("broker", "Finds running apps and calls their tools", path: "/mcp", call)
        return call.answer(json: card, type: cardType)
    }

    @Sendable static func app(_ call: APIRequest) async throws -> Response {
        let id = try await call.endpoint().id.text
        return call.answer(json: card(id, "The tools of one running app", path: "/e/\(id)/mcp", call), type: cardType)
    }

    @Sendable static func catalog(_ call: APIRequest) async throws -> Response {
        let endpoints = call.seen(await call.broker.registry.endpoints)
        let speaking = endpoints.filter { $0.kind == .appreveal || $0.kind == .mcp }.map(\.id.text)
        let entries = [entry("broker", path: "/mcp", call)] + speaking.map { entry($0, path: "/e/\($0)/mcp", call) }
        return call.answer(
            json: ["specVersion": "1.0", "host": ["displayName": "Patchbay"], "entries": .array(entries)],
            type: catalogType
        )
    }

    private static func card(_ name: String, _ what: String, path: String, _ call: APIRequest) -> JSON {
        [
            "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
            "name": .string("local.patchbay/\(name)"),
            "description": .string(what),
            "version": .string(Version.text),
            "remotes": [
                [
                    "type": "streamable-http", "url": .string(address(path, call)),
                    "supportedProtocolVersions": .array(
                        ProtocolVersion.allCases.reversed().map { .string($0.rawValue) }
                    ),
                ]
            ],
        ]
    }

    private static func entry(_ name: String, path: String, _ call: APIRequest) -> JSON {
        [
            "identifier": .string("urn:air:patchbay.local:\(name)"), "displayName": .string(name),
            "type": .string(cardType), "url": .string("\(address(path, call))/server-card"),
        ]
    }

    /// As the caller calls us; the border has made sure that it is a name of ours.
    private static func address(_ path: String, _ call: APIRequest) -> String {
        "http://\(call.request.head.authority ?? "localhost")\(path)"
    }
}
