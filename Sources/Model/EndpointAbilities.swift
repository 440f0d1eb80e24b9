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
    package static let tunnelOnly = EndpointAbilities(limits: ["no MCP tools: use port_forward or patchbay forward"])

    /// The abilities of apps that are connected to Patchbay's own state debugger.
    package static let inboundApp = EndpointAbilities(capabilities: ["tools"], limits: ["no tunnels: use its tools"])
}

extension Endpoint {
    /// The kinds that do not speak MCP and have tools only by a profile.
    private static let kindsWithoutMCP: [EndpointKind] = [.appDebug, .debug, .openagents, .dartVM, .tcp, .web]

    /// Indicates whether the endpoint has no MCP tools, unless a profile describes its kind. The tools of an app that is
    /// connected to Patchbay's own state debugger are Patchbay's.
    package var isTunnelOnly: Bool {
        Self.kindsWithoutMCP.contains(kind) && !sources.contains(.debuglink) && capabilities?.contains("tools") != true
    }

    /// Indicates whether the endpoint is an app that connects to Patchbay's own state debugger. Patchbay cannot dial it.
    package var isInboundApp: Bool {
        kind == .debug && (sources.contains(.debuglink) || capabilities == EndpointAbilities.inboundApp.capabilities)
    }

    /// The reason why no tunnel can lead to the endpoint; nil if one can.
    package var tunnelRefusal: String? {
        isInboundApp ? "\(id) connects to Patchbay itself, so no tunnel can lead to it" : nil
    }

    /// Sets the abilities of the endpoint's kind. Servers of other kinds report their capabilities themselves.
    package mutating func setAbilities(_ abilities: [EndpointKind: EndpointAbilities]) {
        if let known = abilities[kind] ?? (isInboundApp ? .inboundApp : isTunnelOnly ? .tunnelOnly : nil) {
            (capabilities, limits) = (known.capabilities, known.limits)
        } else {
            (capabilities, limits) = (capabilities ?? [], [])
        }
    }
}
