package import Model

/// Who calls through an agent's door, and what that one may do there.
package struct AgentCaller: Sendable {
    /// For the audit log.
    package let caller: Caller
    /// Nil for an owner, who may do everything.
    package let permissions: Permissions?

    package init(_ caller: Caller, permissions: Permissions?) {
        self.caller = caller
        self.permissions = permissions
    }

    package var isOwner: Bool { permissions == nil }

    package func may(_ scope: Scope) -> Bool { permissions?.allow(scope) ?? true }

    package func may(_ scope: Scope, on endpoint: Endpoint) -> Bool { may(scope) && sees(endpoint) }

    /// Whether it may know of this endpoint at all.
    package func sees(_ endpoint: Endpoint) -> Bool {
        permissions?.selector.includes(endpoint.id, app: endpoint.app) ?? true
    }
}
