import AccessControl
import Agents
import HummingbirdCore
import Model

/// `/v1/agents`: the programs that use MCP through the broker.
enum AgentRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await visible(to: request)))
    }

    /// Returns all agents for an owner, else those of the client's own grant.
    static func visible(to request: APIRequest) async -> [AgentSession] {
        let agents = await request.services.mcp.sessions.agents()
        guard !request.principal.isOwner else { return agents }
        guard let grant = request.principal.grant else { return [] }
        return agents.filter { $0.grant == grant.id }
    }
}
