package import Model

/// The client that makes a request, and its permissions.
package struct Principal: Sendable {
    package enum Role: Sendable {
        /// Has full access.
        case owner
        /// Showed the token of this grant.
        case grant(Grant)
        /// A process on the Unix socket, of a user without full access.
        case localUser
        /// A TCP client on this machine without a token, or a remote client without a grant.
        case anonymous
    }

    package let role: Role
    package let source: RequestSource
    /// The client as the audit log names the client.
    package let actor: AuditActor
    /// The user of the client's process; nil if the kernel does not report a user.
    package let user: UInt32?
    /// The TLS key that a remote client proved to hold; nil without a client certificate.
    package let key: KeyPin?
    /// True for a request to an MCP server, which comes from an agent.
    package private(set) var isMCPClient = false

    package init(
        _ role: Role,
        source: RequestSource,
        actor: AuditActor,
        user: UInt32? = nil,
        key: KeyPin? = nil
    ) {
        self.key = key
        self.role = role
        self.source = source
        self.actor = actor
        self.user = user
    }

    /// The same client as an agent.
    package var asMCPClient: Principal {
        var principal = self
        principal.isMCPClient = true
        return principal
    }

    /// The broker itself, which may do everything.
    package static let broker = Principal(.owner, source: .broker, actor: .broker)
}

extension Principal {
    /// True for owners, and for an `admin` grant on the Unix socket that is bound to the connecting user.
    package var isOwner: Bool {
        switch (role, source) {
        case (_, .remote): false
        case (.owner, _): true
        case (.grant(let grant), .unix(let uid)): grant.permissions.allow(.admin) && grant.binding == .user(uid)
        default: false
        }
    }

    package var grant: Grant? {
        if case .grant(let grant) = role { grant } else { nil }
    }

    /// Returns whether the client has a scope: as an owner, or by its grant.
    package func may(_ scope: Scope) -> Bool {
        if isRemote, scope.isLocalOnly { return false }
        return isOwner || grant?.permissions.allow(scope) ?? false
    }

    /// True for a client of the remote listener. Such a client is never an owner and never reads a secret.
    package var isRemote: Bool {
        if case .remote = source { true } else { false }
    }

    /// The tools that the client may call.
    package var tools: ToolFilter { isOwner ? .all : grant?.permissions.tools ?? .all }

    /// The reason why the client's grant cannot have a missing scope, with a leading colon. Empty without such a reason.
    package func exclusion(of scope: Scope) -> String {
        grant?.permissions.exclusion(of: scope).map { ": \($0)" } ?? ""
    }

    /// Returns whether the client has a scope, and may see an endpoint.
    package func may(_ scope: Scope, on endpoint: Endpoint) -> Bool { may(scope) && canSee(endpoint) }

    /// Throws unless the client has the scopes for a tunnel to an endpoint.
    package func requireTunnelScopes(for endpoint: Endpoint) throws(Problem) {
        guard let missing = endpoint.kind.tunnelScopes.first(where: { !may($0) }) else { return }
        throw Problem(
            .forbidden,
            "a tunnel to \(endpoint.id), of kind \(endpoint.kind), needs the scope \(missing.rawValue), "
                + "which the grant does not have\(exclusion(of: missing))",
            hint: "an owner can create an invite with it: patchbay pair --scope \(missing.rawValue) …"
        )
    }

    /// Returns whether the client may see an endpoint: as an owner, or by the selector of its grant.
    package func canSee(_ endpoint: Endpoint) -> Bool { canSee(endpoint.id, approvedApp: endpoint.approvedApp) }

    /// Returns whether the client may see the endpoint with this `Endpoint.id` and `Endpoint.approvedApp`.
    package func canSee(_ id: EndpointID, approvedApp: SanitizedText?) -> Bool {
        isOwner || grant?.permissions.selector.includes(id, approvedApp: approvedApp) ?? false
    }

    /// True if the client may see every endpoint. Only such clients may see devices, which are not endpoints.
    package var canSeeAllEndpoints: Bool { isOwner || grant?.permissions.selector == .all }

    /// Returns an endpoint as the client may see it. The IDs of other endpoints are for clients that may see every
    /// endpoint.
    package func view(of endpoint: Endpoint) -> Endpoint {
        guard !canSeeAllEndpoints else { return endpoint }
        var view = endpoint
        view.possiblySameAs = nil
        view.sameLaunchAs = nil
        return view
    }

    /// An identifier shared by all requests of the same user or grant. Sessions and artifacts belong to a holder.
    package var holder: String {
        switch actor {
        case .process(let uid, _, _): "uid:\(uid)"
        case .grant(let id): "grant:\(id)"
        case .anonymous: "anonymous"
        case .broker: "broker"
        }
    }
}
