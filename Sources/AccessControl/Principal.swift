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
        /// A client of the broker of another host in the team.
        case member(MemberClient)
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
    /// The name of this broker's host, to which the endpoints without a host belong; nil without a team.
    package var host: HostName?
    /// The grant that is the session of an owner's browser; nil for any other client.
    package let session: Grant?
    /// True for a request to an MCP server, which comes from an agent.
    package private(set) var isMCPClient = false

    package init(
        _ role: Role,
        source: RequestSource,
        actor: AuditActor,
        user: UInt32? = nil,
        key: KeyPin? = nil,
        host: HostName? = nil
    ) {
        self.host = host
        session = nil
        self.key = key
        self.role = role
        self.source = source
        self.actor = actor
        self.user = user
    }

    /// Creates the principal of an owner's browser. The caller has verified that the user is still an owner.
    ///
    /// - Parameters:
    ///   - session: The grant of the token.
    ///   - source: The connection.
    ///   - user: The user of the connection, as the kernel reports the user.
    /// - Throws: `AccessError.refused` unless the session is for this user on the loopback listener.
    package init(session: Grant, source: RequestSource, user: UInt32?) throws(AccessError) {
        guard case (.dashboard(let uid), .tcp) = (session.binding, source), uid == user else { throw .refused }
        self.session = session
        role = .owner
        self.source = source
        self.user = uid
        actor = .dashboard(uid: uid, grant: session.id)
        key = nil
        host = nil
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
    /// True for owners, also in a browser, and for an `admin` grant on the Unix socket that is bound to the connecting user.
    package var isOwner: Bool {
        switch (role, source) {
        case (_, .remote): false
        // The kernel does not identify a TCP client by itself: there, only the session of a browser makes an owner.
        case (.owner, .tcp): session != nil
        case (.owner, _): true
        case (.grant(let grant), .unix(let uid)): grant.permissions.allow(.admin) && grant.binding == .user(uid)
        default: false
        }
    }

    package var grant: Grant? {
        if case .grant(let grant) = role { grant } else { nil }
    }

    /// The grant whose end ends the requests of this client: that of its token, also of an owner's session.
    package var credential: Grant? { grant ?? session }

    /// The client of another host's broker; nil for a client of this broker.
    package var member: MemberClient? {
        if case .member(let member) = role { member } else { nil }
    }

    /// The permissions of a client that is no owner; nil for a client without permissions.
    package var permissions: Permissions? {
        switch role {
        case .grant(let grant): grant.permissions
        case .member(let member): member.caller?.permissions
        case .owner, .localUser, .anonymous: nil
        }
    }

    /// Returns whether the client has a scope: as an owner, or by its permissions.
    package func may(_ scope: Scope) -> Bool {
        if isRemote, scope.isLocalOnly { return false }
        if member != nil, scope.isHostOnly { return false }
        return isOwner || permissions?.allow(scope) ?? false
    }

    /// True for a client of the remote or the team listener. Such a client is never an owner and never reads a secret.
    package var isRemote: Bool {
        if case .remote = source { true } else { false }
    }

    /// The tools that the client may call.
    package var tools: ToolFilter { isOwner ? .all : permissions?.tools ?? .all }

    /// The reason why the client's grant cannot have a missing scope, with a leading colon. Empty without such a reason.
    package func exclusion(of scope: Scope) -> String {
        permissions?.exclusion(of: scope).map { ": \($0)" } ?? ""
    }

    /// Returns whether the client has a scope, and may see an endpoint.
    package func may(_ scope: Scope, on endpoint: Endpoint) -> Bool { may(scope) && canSee(endpoint) }

    /// Throws unless the client has the scopes for a tunnel to an endpoint.
    package func requireTunnelScopes(for endpoint: Endpoint) throws(Problem) {
        guard let missing = endpoint.tunnelScopes.first(where: { !may($0) }) else { return }
        throw Problem(
            .forbidden,
            "a tunnel to \(endpoint.id), of kind \(endpoint.kind), needs the scope \(missing.rawValue), "
                + "which the grant does not have\(exclusion(of: missing))",
            hint: "an owner can create an invite with it: \((endpoint.tunnelScopes.last ?? missing).pairCommand)"
        )
    }

    /// Returns whether the client may see an endpoint: as an owner, or by the selector of its grant.
    package func canSee(_ endpoint: Endpoint) -> Bool { canSee(endpoint.id, approvedApp: endpoint.approvedApp) }

    /// Returns whether the client may see the endpoint with this `Endpoint.id` and `Endpoint.approvedApp`.
    package func canSee(_ id: EndpointID, approvedApp: SanitizedText?) -> Bool {
        // A host reaches a third one through that one's own broker.
        if member != nil, id.host != nil { return false }
        return isOwner || permissions?.selector.includes(id, approvedApp: approvedApp, on: host) ?? false
    }

    /// Returns the ID by which the client knows an endpoint of this broker. A client of another host knows it with the
    /// name of this host.
    package func knownID(of id: EndpointID) -> EndpointID {
        guard member != nil, let host else { return id }
        return id.on(host)
    }

    /// True if the client may see every endpoint. Only such clients may see devices, which are not endpoints.
    package var canSeeAllEndpoints: Bool { isOwner || permissions?.selector == .all }

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
        case .process(let uid, _, _), .dashboard(let uid, _): "uid:\(uid)"
        case .grant(let id): "grant:\(id)"
        case .member(let host, _): member?.holder ?? MemberClient(host: host, caller: nil).holder
        case .anonymous: "anonymous"
        case .broker: "broker"
        }
    }
}

/// A client of the broker of another host, as that broker names it.
package struct MemberClient: Hashable, Sendable {
    package let host: HostName
    /// Nil for a request without a caller, which has no permission.
    package let caller: TeamCaller?

    package init(host: HostName, caller: TeamCaller?) {
        self.host = host
        self.caller = caller
    }

    /// The beginning of the holder keys of all clients of other hosts.
    static let holderPrefix = "host:"

    /// The beginning of the holder keys of all clients of a host.
    package static func holderPrefix(of host: HostName) -> String { "\(holderPrefix)\(host)/" }

    /// The key of the client as a holder of leases and artifacts.
    package var holder: String { Self.holderPrefix(of: host) + (caller?.holder ?? "") }

    /// The name that other clients see.
    package var name: SanitizedText { SanitizedText("\(caller.map { "\($0.name)" } ?? "the broker") on \(host)") }
}
