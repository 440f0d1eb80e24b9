package import JSON

/// What answers at one MCP URL: the broker itself, one app, or all apps together.
///
/// A server speaks in the words of no revision: it gets what was asked without the protocol's own `_meta`, and gives the bare
/// result. The door does what differs from era to era: handshake, sessions, `ping`, `server/discover`, subscriptions,
/// `resultType`, `ttlMs` and `cacheScope`, status codes and streams.
package protocol MCPServer: Sendable {
    /// What it says about itself in `initialize` and `server/discover`.
    func description(for caller: AgentCaller) async -> ServerDescription

    /// Answers `tools/*`, `resources/list|templates/list|read`, `prompts/*` and `completion/complete`.
    ///
    /// A cancelled task means that the caller wants the answer no more.
    ///
    /// - Throws: `RPCError`; `unknownMethod` for what it does not do. What went wrong with a tool is a result with `isError`.
    func answer(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject

    /// What a tool wants to have in headers, too, as far as that is known without asking anybody.
    func parameterHeaders(of tool: String, for caller: AgentCaller) async -> ParameterHeaders

    /// What changes from now on, for those who subscribed, until the task is cancelled.
    func changes(for caller: AgentCaller) -> AsyncStream<ServerChange>
}

extension MCPServer {
    package func parameterHeaders(of tool: String, for caller: AgentCaller) async -> ParameterHeaders { .none }
}

/// What a server says about itself.
package struct ServerDescription: Hashable, Sendable {
    /// `name`, `version` and what else `Implementation` may have.
    package let info: JSONObject
    /// In the words of 2025-11-25; the door takes away what an older or newer revision does not know.
    package let capabilities: JSONObject
    /// Never with text that came from an app or from the network, but for an app's own server.
    package let instructions: String?

    package init(info: JSONObject, capabilities: JSONObject, instructions: String? = nil) {
        self.info = info
        self.capabilities = capabilities
        self.instructions = instructions
    }
}

extension ServerDescription {
    func has(_ family: String) -> Bool { capabilities[family] != nil }

    /// A switch inside a capability, `resources.subscribe` for one.
    func has(_ family: String, _ name: String) -> Bool { capabilities[family]?[name] == true }
}

/// Something about a server that subscribers may want to hear.
package enum ServerChange: Hashable, Sendable {
    case tools
    case prompts
    case resources
    /// The resource of that address.
    case resource(String)
}
