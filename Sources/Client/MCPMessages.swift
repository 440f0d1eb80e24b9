package import Model

/// The tools of an app.
package struct ToolList: Hashable, Sendable {
    /// Tool descriptions as the app wrote them, sorted by name.
    package let tools: [JSONObject]
    /// True if the list is from the cache because the app did not answer.
    package let isStale: Bool
    /// The reason why the list is stale, and the next step.
    package let reason: String?
    package let hint: String?
    /// True if the list has changed since its last display.
    package let hasChanged: Bool
    /// The limit of the caller's grant, such as `read-only tools`. Nil for a list of all tools.
    package let limit: String?

    package init(
        tools: [JSONObject],
        isStale: Bool = false,
        hasChanged: Bool = false,
        limit: String? = nil,
        reason: String? = nil,
        hint: String? = nil
    ) {
        self.tools = tools
        self.isStale = isStale
        self.hasChanged = hasChanged
        self.limit = limit
        (self.reason, self.hint) = (reason, hint)
    }

    package func tool(named name: String) -> JSONObject? { tools.first { $0["name"] == .string(name) } }
}

/// One of the broker's MCP servers.
package enum MCPTarget: Hashable, Sendable {
    /// The broker's own server with its fixed tools.
    case broker
    /// The server of one app, at a stable URL.
    case endpoint(EndpointID)
    /// The aggregate of all apps.
    case all

    /// Path segments of the server.
    var path: [String] {
        switch self {
        case .broker: ["mcp"]
        case .endpoint(let id): ["e", id.text, "mcp"]
        case .all: ["all", "mcp"]
        }
    }
}

/// A message for an MCP server.
package struct OutgoingMCPMessage: Hashable, Sendable {
    /// An HTTP header of MCP.
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A JSON-RPC message; nil opens the stream of messages that the server sends on its own.
    package let body: [UInt8]?
    package let headers: [Header]

    package init(body: [UInt8]?, headers: [Header] = []) {
        self.body = body
        self.headers = headers
    }
}

/// A part of an MCP server's response.
package enum MCPResponsePart: Hashable, Sendable {
    /// The server accepted the message. Always the first event. The response to `initialize` has an `Mcp-Session-Id`.
    case opened(session: String?)
    /// A JSON-RPC message on one line. `isLast` is true if no further message can follow.
    case message([UInt8], isLast: Bool)
    /// The server rejected the message: status and body. The only event.
    case refused(status: Int, [UInt8])
}
