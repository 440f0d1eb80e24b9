package import AccessControl
package import Model

/// The principal of an MCP request and its permissions.
package struct AgentCaller: Sendable {
    /// The actor for the audit log.
    package let caller: AuditActor
    /// The permissions of a grant; nil for an owner, which may do everything.
    package let permissions: Permissions?
    /// The server through which the request came, for the audit log.
    package let origin: RequestSource
    /// The UID of the client process; nil if the kernel does not report one.
    package let user: UInt32?

    package init(_ caller: AuditActor, permissions: Permissions?, origin: RequestSource = .broker, user: UInt32? = nil)
    {
        self.caller = caller
        self.permissions = permissions
        self.origin = origin
        self.user = user
    }

    package var isOwner: Bool { permissions == nil }

    /// The ID of the caller's grant, if it has one.
    package var grant: String? { if case .grant(let id) = caller { id } else { nil } }

    /// Returns whether the caller has a scope.
    package func may(_ scope: Scope) -> Bool { permissions?.allow(scope) ?? true }

    package func may(_ scope: Scope, on endpoint: Endpoint) -> Bool { may(scope) && sees(endpoint) }

    /// Returns whether the caller may see this endpoint.
    package func sees(_ endpoint: Endpoint) -> Bool {
        permissions?.selector.includes(endpoint) ?? true
    }

    /// True if the caller may see objects that are not endpoints, such as devices.
    package var seesAll: Bool { permissions.map { $0.selector == .all } ?? true }

    /// An identifier shared by all requests of the same user or grant. Sessions and artifacts belong to a holder.
    package var holder: String {
        switch caller {
        case .process(let uid, _, _): "uid:\(uid)"
        case .grant(let id): "grant:\(id)"
        case .anonymous: "anonymous"
        case .broker: "broker"
        }
    }
}
