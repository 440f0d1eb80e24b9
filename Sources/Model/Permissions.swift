/// The actions that a grant allows, and the endpoints to which they apply.
package struct Permissions: Hashable, Sendable {
    package let scopes: Set<Scope>
    package let selector: Selector
    /// The tools that the scope `endpoint.call` includes.
    package let tools: ToolFilter

    package init(_ scopes: Set<Scope>, on selector: Selector, tools: ToolFilter = .all) {
        self.scopes = scopes
        self.selector = selector
        self.tools = tools
    }

    package func isSubset(of other: Permissions) -> Bool {
        scopes.isSubset(of: other.scopes) && selector.isSubset(of: other.selector)
            && tools.isSubset(of: other.tools)
    }

    /// Returns whether the scope is granted, for actions that do not concern one endpoint. With a limit to certain
    /// tools, a scope that would bypass the limit is never granted.
    package func allow(_ scope: Scope) -> Bool {
        scopes.contains(scope) && (tools == .all || !scope.bypassesTools)
    }

    /// Returns whether the scope is granted on an endpoint. `own` is the name of this broker's host; nil without a team.
    package func allow(_ scope: Scope, on endpoint: Endpoint, of own: HostName? = nil) -> Bool {
        allow(scope) && selector.includes(endpoint, on: own)
    }

    /// Returns the permissions for the broker of another host, with that broker's own IDs.
    package func asserted(to host: HostName) -> Permissions {
        Permissions(scopes.filter { !$0.isHostOnly }, on: selector.asserted(to: host), tools: tools)
    }

    /// The reason why the tool filter excludes a scope, as a sentence without a period. Nil if it does not.
    package func exclusion(of scope: Scope) -> String? {
        guard tools != .all, scope.bypassesTools else { return nil }
        return "\(scope.rawValue) would bypass the limit to \(tools), because it allows any call of an app"
    }
}

/// Describes the scopes and the tools, without the endpoints: `endpoint.call, registry.read with read-only tools`.
extension Permissions: CustomStringConvertible {
    package var description: String {
        scopes.sorted().map(\.rawValue).joined(separator: ", ") + (tools == .all ? "" : " with \(tools)")
    }
}

/// Encodes the scopes sorted, so equal permissions have equal bytes. `tools` is absent for all tools, as in records of
/// versions without a tool filter.
extension Permissions: Codable {
    private enum Keys: String, CodingKey { case scopes, selector, tools }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        scopes = Set(try container.decode([Scope].self, forKey: .scopes))
        selector = try container.decode(Selector.self, forKey: .selector)
        tools = try container.decodeIfPresent(ToolFilter.self, forKey: .tools) ?? .all
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(scopes.sorted(), forKey: .scopes)
        try container.encode(selector, forKey: .selector)
        if tools != .all { try container.encode(tools, forKey: .tools) }
    }
}

/// One action that a grant allows.
package enum Scope: String, Hashable, Sendable, Codable, CaseIterable {
    /// List endpoints and devices and receive their changes.
    case registryRead = "registry.read"
    /// Call the tools of an endpoint.
    case endpointCall = "endpoint.call"
    /// Register an endpoint: an app's own entry, with its address and its secret.
    case endpointRegister = "endpoint.register"
    /// Open tunnels and streams.
    case tunnelOpen = "tunnel.open"
    /// Let the broker send an endpoint's secret. The holder of the grant never receives the secret.
    case secretUse = "secret.use"
    /// Open tunnels to endpoints that run commands or open files for their clients.
    case shell
    /// Read an endpoint's secret as part of the URL of a Dart VM service.
    case secretRead = "secret.read"
    /// Create invites with at most the permissions of the inviter.
    case inviteCreate = "invite.create"
    /// Do everything that an owner may do. Valid over the unix socket only, and never with a bearer token.
    case admin
}

extension Scope {
    /// True for scopes that never count at the remote listener.
    package var isLocalOnly: Bool { self == .admin || self == .secretRead }

    /// True for scopes that count only at the client's own broker, and never at the broker of another host.
    package var isHostOnly: Bool { isLocalOnly || self == .inviteCreate || self == .endpointRegister }

    /// True for scopes whose holder can bypass a limit to certain tools. A tunnel carries any call of an app, as does
    /// the URL of a Dart VM service.
    package var bypassesTools: Bool {
        switch self {
        case .tunnelOpen, .shell, .secretRead, .admin: true
        case .registryRead, .endpointCall, .endpointRegister, .secretUse, .inviteCreate: false
        }
    }
}

extension Scope {
    /// The command that creates an invite with this scope and those without which it is of no use.
    package var pairCommand: String {
        let needed: [Scope] =
            switch self {
            case .shell: [self, .tunnelOpen, .registryRead]
            case .tunnelOpen, .endpointCall, .secretUse: [self, .registryRead]
            case .registryRead, .endpointRegister, .secretRead, .inviteCreate, .admin: [self]
            }
        return "patchbay pair " + needed.map { "--scope \($0.rawValue)" }.joined(separator: " ")
    }
}

extension Endpoint {
    /// The scopes that a tunnel to the endpoint needs.
    ///
    /// The methods of OpenAgents include `terminal/run`. A DevTools server on a machine runs its client's code in Node, or
    /// opens files in a browser. On a phone it reaches one app.
    package var tunnelScopes: [Scope] {
        let isOnMachine = location.udid == nil || shownRoutes.contains { $0.route.isNetwork }
        let runsCommands = kind == .openagents || kind == .web && isOnMachine
        return runsCommands ? [.tunnelOpen, .shell] : [.tunnelOpen]
    }
}

extension Scope: Comparable {
    package static func < (one: Scope, other: Scope) -> Bool { one.rawValue < other.rawValue }
}
