package import AccessControl
package import Model

/// Handles the requests at an MCP URL: for the broker's own tools, for one app, or for all apps together.
///
/// A handler is independent of protocol versions. It gets requests without the protocol's own `_meta` and returns bare
/// results. The transport implements the rest: handshake, sessions, `ping`, `server/discover`, subscriptions,
/// `resultType`, `ttlMs`, `cacheScope`, status codes and streams.
package protocol MCPRequestHandler: Sendable {
    /// Returns the handler's part of the results of `initialize` and `server/discover`.
    func description(for principal: Principal) async -> HandlerDescription

    /// Handles `tools/*`, `resources/list|templates/list|read`, `prompts/*` and `completion/complete`.
    ///
    /// The task is cancelled when the principal no longer needs the response.
    ///
    /// - Throws: `RPCError`; `methodNotFound` for an unsupported method. A tool that fails returns a result with
    ///   `isError`.
    func answer(_ request: MCPRequest, of principal: Principal) async throws(RPCError) -> JSONObject

    /// Returns the parameter headers of a tool, if known without asking the app.
    func parameterHeaders(of tool: String, for principal: Principal) async -> ParameterHeaders

    /// Returns the scope without which no call of a tool succeeds.
    func scope(ofTool name: String) -> Scope

    /// Returns the changes from now on, for subscribers, until the task is cancelled.
    func changes(for principal: Principal) -> AsyncStream<ServerChange>

    /// Returns the lists that are no longer as they were before the broker started, or that may have changed unnoticed.
    func changedLists(for principal: Principal) async -> Set<ServerChange>
}

extension MCPRequestHandler {
    package func parameterHeaders(of tool: String, for principal: Principal) async -> ParameterHeaders { .none }

    package func scope(ofTool name: String) -> Scope { .endpointCall }

    package func changedLists(for principal: Principal) async -> Set<ServerChange> { [] }
}

/// The description of a handler for `initialize` and `server/discover`.
package struct HandlerDescription: Hashable, Sendable {
    /// `name`, `version` and the other members of `Implementation`.
    package let info: JSONObject
    /// The capabilities as 2025-11-25 defines them. The transport removes capabilities that another version does not
    /// have.
    package let capabilities: JSONObject
    /// Instructions for the model. They contain text from an app or from the network only in the description of an app.
    package let instructions: String?

    package init(info: JSONObject, capabilities: JSONObject, instructions: String? = nil) {
        self.info = info
        self.capabilities = capabilities
        self.instructions = instructions
    }
}

extension HandlerDescription {
    /// Returns whether the handler has a capability.
    package func has(_ family: String) -> Bool { capabilities[family] != nil }

    /// Returns whether a flag inside a capability is true, for example `resources.subscribe`.
    package func has(_ family: String, _ name: String) -> Bool { capabilities[family]?[name] == true }
}

/// A change of an MCP server's lists or resources, of which subscribers are notified.
package enum ServerChange: Hashable, Sendable {
    case tools
    case prompts
    case resources
    /// The resource of this URI.
    case resource(String)
}
