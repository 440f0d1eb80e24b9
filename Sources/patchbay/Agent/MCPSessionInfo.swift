import Client
import JSON

/// What a client of the handshake era and the broker have agreed upon.
struct MCPSessionInfo: Sendable, Equatable {
    var id: String?
    private(set) var revision: String?

    /// Takes the revision out of the answer to `initialize`.
    mutating func read(_ answer: JSON) { revision = answer["result"]?["protocolVersion"]?.string ?? revision }

    /// From 2025-06-18 on the revision is said with every message.
    var headers: [MCPMessage.Header] {
        (id.map { [.init("Mcp-Session-Id", $0)] } ?? []) + (revision.map { [.init("MCP-Protocol-Version", $0)] } ?? [])
    }
}
