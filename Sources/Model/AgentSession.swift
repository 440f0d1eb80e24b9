package import FoundationEssentials

/// An agent that uses MCP through the broker: an item of `GET /v1/agents`.
package struct AgentSession: Hashable, Sendable, Codable, Identifiable {
    /// The program as it names itself.
    package struct Client: Hashable, Sendable, Codable {
        package let name: SanitizedText
        package let version: SanitizedText?

        package init(name: SanitizedText, version: SanitizedText?) {
            self.name = name
            self.version = version
        }
    }

    /// A running call of a tool.
    package struct Call: Hashable, Sendable, Codable {
        package let tool: SanitizedText
        /// The called endpoint. Nil for a tool of the broker itself.
        package let endpoint: EndpointID?
        package let startedAt: Date

        package init(tool: SanitizedText, endpoint: EndpointID?, startedAt: Date) {
            self.tool = tool
            self.endpoint = endpoint
            self.startedAt = startedAt
        }
    }

    /// An identifier for lists. It is not the ID of the MCP session, which only its client knows.
    package let id: String
    /// Nil if the program has not named itself since the start of the broker.
    package let client: Client?
    /// The name of the grant, or the user.
    package let name: SanitizedText
    /// The ID of the grant. Nil for a program of an owner.
    package let grant: String?
    /// The endpoint whose MCP server the agent uses. Nil for the broker's server.
    package let endpoint: EndpointID?
    package let startedAt: Date
    package let lastCallAt: Date?
    /// The number of calls of tools since the start of the broker.
    package let calls: Int
    package let inFlight: [Call]

    package init(
        id: String,
        client: Client?,
        name: SanitizedText,
        grant: String?,
        endpoint: EndpointID?,
        startedAt: Date,
        lastCallAt: Date?,
        calls: Int,
        inFlight: [Call]
    ) {
        self.id = id
        self.client = client
        self.name = name
        self.grant = grant
        self.endpoint = endpoint
        self.startedAt = startedAt
        self.lastCallAt = lastCallAt
        self.calls = calls
        self.inFlight = inFlight
    }
}

extension AgentSession: ListItem { package static let listName = "agents" }
