package import AccessControl
package import Model

/// Who calls through an agent's door, and what that one may do there.
package struct AgentCaller: Sendable {
    /// For the audit log.
    package let caller: AuditActor
    /// Nil for an owner, who may do everything.
    package let permissions: Permissions?
    /// The door that it came through, for the audit log.
    package let origin: RequestSource
    /// The user whose process it is; nil where the kernel does not say.
    package let user: UInt32?

    package init(_ caller: AuditActor, permissions: Permissions?, origin: RequestSource = .broker, user: UInt32? = nil)
    {
        self.caller = caller
        self.permissions = permissions
        self.origin = origin
        self.user = user
    }

    package var isOwner: Bool { permissions == nil }

    /// The grant that it calls under, if it does.
    package var grant: String? { if case .grant(let id) = caller { id } else { nil } }

    package func may(_ scope: Scope) -> Bool { permissions?.allow(scope) ?? true }

    package func may(_ scope: Scope, on endpoint: Endpoint) -> Bool { may(scope) && sees(endpoint) }

    /// Whether it may know of this endpoint at all.
    package func sees(_ endpoint: Endpoint) -> Bool {
        permissions?.selector.includes(endpoint) ?? true
    }

    /// Whether it may know of what is no endpoint yet: a phone.
    package var seesAll: Bool { permissions.map { $0.selector == .all } ?? true }

    /// The same for every call of the same user or the same grant: whose a session or an artifact is.
    package var holder: String {
        switch caller {
        case .process(let uid, _, _): "uid:\(uid)"
        case .grant(let id): "grant:\(id)"
        case .stranger: "stranger"
        case .broker: "broker"
        }
    }
}
