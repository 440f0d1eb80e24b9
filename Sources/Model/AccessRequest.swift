package import FoundationEssentials

/// A pending request for access, by a process on this machine (RFC 8628) or by a client of OAuth. An owner approves or
/// denies it.
package struct AccessRequest: Hashable, Sendable, Codable {
    /// The user code that the owner types, for example `WDJB-MJHT` (RFC 8628, `user_code`).
    package let userCode: String
    /// The process that sent the request.
    package let requester: AuditActor
    package let name: SanitizedText
    package var permissions: Permissions
    package let expiresAt: Date
    /// The authorization of OAuth that waits; nil for the request of a process.
    package let authorization: RequestedAuthorization?

    package init(
        userCode: String,
        requester: AuditActor,
        name: SanitizedText,
        permissions: Permissions,
        expiresAt: Date,
        authorization: RequestedAuthorization? = nil
    ) {
        self.authorization = authorization
        self.userCode = userCode
        self.requester = requester
        self.name = name
        self.permissions = permissions
        self.expiresAt = expiresAt
    }
}

/// The facts about an authorization of OAuth that the client cannot choose freely, for the owner.
package struct RequestedAuthorization: Hashable, Sendable, Codable {
    /// The browser that waits, by its address or its user, and the origin, as people read them.
    package let asker: String
    /// The scheme and the host to which the browser takes the answer. On loopback it is a program of the browser's machine.
    package let origin: String
    /// The host whose metadata document allows the answer to go to `origin`; nil for a client that has registered itself.
    package let host: String?
    /// The URL of the MCP server.
    package let resource: String

    package init(browser: String, origin: String, host: String? = nil, resource: String) {
        asker = "\(browser), for \(origin)" + (host.map { " with the client ID of \($0)" } ?? "")
        self.origin = origin
        self.host = host
        self.resource = resource
    }
}

/// The access that a process on this machine requests: the body of `POST /v1/access-requests`.
package struct AccessRequestSpec: Hashable, Sendable, Codable {
    package var name: SanitizedText
    package var permissions: Permissions
    /// True requests a bearer token, which any client may use over any listener.
    ///
    /// Nil or false binds the token to processes of the requester's user on the unix socket.
    package var bearer: Bool?
    /// The lifetime of the grant in seconds, 1 s to 30 days. Nil means 8 hours.
    package var lifetimeSeconds: Int?

    package init(name: SanitizedText, permissions: Permissions, bearer: Bool? = nil, lifetimeSeconds: Int? = nil) {
        self.name = name
        self.permissions = permissions
        self.bearer = bearer
        self.lifetimeSeconds = lifetimeSeconds
    }
}

/// The part of a request that an owner approves: the body of `POST /v1/access-requests/{userCode}/approve`.
package struct AccessRequestLimits: Hashable, Sendable, Codable {
    /// The scopes to grant. Nil means those of the request, but with limited tools none that would bypass the limit.
    package var scopes: [Scope]?
    /// Nil means the endpoints of the request.
    package var selector: Selector?
    /// Nil means the tools of the request.
    package var tools: ToolFilter?

    package init(scopes: [Scope]? = nil, selector: Selector? = nil, tools: ToolFilter? = nil) {
        (self.scopes, self.selector, self.tools) = (scopes, selector, tools)
    }

    /// Returns the permissions to grant instead of those of a request, which may be more.
    package func applied(to asked: Permissions) -> Permissions {
        let scopes = scopes.map { Set($0) } ?? asked.scopes.filter { tools ?? .all == .all || !$0.bypassesTools }
        return Permissions(scopes, on: selector ?? asked.selector, tools: tools ?? asked.tools)
    }
}

/// A request that was just created: the response to `POST /v1/access-requests`.
package struct AccessRequestCreated: Sendable, Codable {
    package let request: AccessRequest
    /// The secret with which the requester polls for the decision (RFC 8628, `device_code`).
    package let deviceCode: String
    /// The minimum number of seconds between two polls.
    package let intervalSeconds: Int
    /// The command that the owner types to approve the request.
    package let approveWith: String

    package init(request: AccessRequest, deviceCode: String, intervalSeconds: Int) {
        self.request = request
        self.deviceCode = deviceCode
        self.intervalSeconds = intervalSeconds
        approveWith = "patchbay requests approve \(request.userCode)"
    }
}

/// A poll for the decision: the body of `POST /v1/access-requests/poll`.
package struct AccessRequestPoll: Sendable, Codable {
    /// The device code from the response to `POST /v1/access-requests`.
    package let deviceCode: String
    /// The client key as in `RedemptionSpec`. Every poll must send the same value.
    package let client: String
    /// The name of the new grant. Nil keeps the name of the request.
    package let name: SanitizedText?

    package init(deviceCode: String, client: String, name: SanitizedText? = nil) {
        self.deviceCode = deviceCode
        self.client = client
        self.name = name
    }
}

/// The state of a request: the response to `POST /v1/access-requests/poll`.
package struct AccessRequestStatus: Sendable, Codable {
    package enum State: String, Hashable, Sendable, Codable {
        case pending
        case denied
        case granted
    }

    package let state: State
    /// The minimum number of seconds until the next poll. Nil unless the request is pending.
    package let intervalSeconds: Int?
    /// The grant and its token. Nil unless the request is granted.
    package let granted: IssuedGrant?

    package init(state: State, intervalSeconds: Int? = nil, granted: IssuedGrant? = nil) {
        self.state = state
        self.intervalSeconds = intervalSeconds
        self.granted = granted
    }
}
