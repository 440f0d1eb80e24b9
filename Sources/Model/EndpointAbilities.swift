/// The abilities of endpoints of one kind and what they lack, in words for people and agents.
package struct EndpointAbilities: Hashable, Sendable {
    /// The abilities, for example `screenshot`. For MCP servers the names of MCP's server capabilities, such as `tools`.
    package let capabilities: [String]
    /// The limits, for example `no coordinates`.
    package let limits: [String]

    package init(capabilities: [String] = [], limits: [String] = []) {
        self.capabilities = capabilities
        self.limits = limits
    }

    /// The abilities of endpoints that can only be tunnelled.
    package static let tunnelOnly = EndpointAbilities(limits: ["no MCP tools: use port_forward"])
}

extension Endpoint {
    /// The kinds that do not speak MCP and have tools only by a profile.
    private static let kindsWithoutMCP: [EndpointKind] = [.appDebug, .debug, .openagents, .dartVM, .tcp]

    /// Indicates whether the endpoint has no MCP tools, unless a profile describes its kind. The tools of an app that is
    /// connected to Patchbay's own state debugger are Patchbay's.
    package var isTunnelOnly: Bool {
        Self.kindsWithoutMCP.contains(kind) && !sources.contains(.debuglink) && capabilities?.contains("tools") != true
    }

    /// Sets the abilities of the endpoint's kind. Servers of other kinds report their capabilities themselves.
    package mutating func setAbilities(_ abilities: [EndpointKind: EndpointAbilities]) {
        if let known = abilities[kind] ?? (isTunnelOnly ? .tunnelOnly : nil) {
            (capabilities, limits) = (known.capabilities, known.limits)
        } else {
            (capabilities, limits) = (sources.contains(.debuglink) ? ["tools"] : capabilities ?? [], [])
        }
    }
}
