import AccessControl
import Model

/// The client that makes a request, and its permissions.
struct Principal: Sendable {
    enum Role: Sendable {
        /// Has full access.
        case owner
        /// Showed the token of this grant.
        case grant(Grant)
        /// A process on the Unix socket, of a user without full access.
        case localUser
        /// A TCP client on this machine without a token.
        case anonymous
    }

    let role: Role
    let source: RequestSource
    /// The client as the audit log names the client.
    let actor: AuditActor
    /// The user of the client's process; nil if the kernel does not report a user.
    let user: UInt32?

    /// True for owners, and for an `admin` grant on the Unix socket that is bound to the connecting user.
    var isOwner: Bool {
        switch (role, source) {
        case (.owner, _): true
        case (.grant(let grant), .unix(let uid)): grant.permissions.allow(.admin) && grant.binding == .user(uid)
        default: false
        }
    }

    var grant: Grant? {
        if case .grant(let grant) = role { grant } else { nil }
    }

    /// Returns whether the client may see an endpoint: as an owner, or by the selector of its grant.
    func canSee(_ endpoint: Endpoint) -> Bool {
        isOwner || grant?.permissions.selector.includes(endpoint) ?? false
    }

    /// True if the client may see every endpoint. Only such clients may see devices, which are not endpoints.
    var canSeeAllEndpoints: Bool { isOwner || grant?.permissions.selector == .all }
}
