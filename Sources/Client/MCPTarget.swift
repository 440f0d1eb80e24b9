package import Model

/// One of the broker's MCP servers.
package enum MCPTarget: Hashable, Sendable {
    /// The broker's own, with its fixed tools.
    case broker
    /// An app's, at the address that stays.
    case endpoint(EndpointID)
    /// All apps together.
    case all

    /// The segments of its path.
    var path: [String] {
        switch self {
        case .broker: ["mcp"]
        case .endpoint(let id): ["e", id.text, "mcp"]
        case .all: ["all", "mcp"]
        }
    }
}
