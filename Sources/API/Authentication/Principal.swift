import AccessControl
import Model

/// Who makes a call, and what that one may do.
struct Principal: Sendable {
    enum Standing: Sendable {
        /// May do everything.
        case owner
        /// Showed the token of this grant.
        case grant(Grant)
        /// A process of a user that owns nothing, on the unix socket.
        case user
        /// Somebody on this machine, through TCP, who has shown nothing.
        case stranger
    }

    let standing: Standing
    let origin: RequestSource
    /// For the audit log.
    let caller: AuditActor
    /// The user whose process it is; nil where the kernel does not say.
    let user: UInt32?

    /// Also whoever holds `admin`, where that counts: on the unix socket, as the user to whom the grant is bound.
    var isOwner: Bool {
        switch (standing, origin) {
        case (.owner, _): true
        case (.grant(let grant), .unix(let uid)): grant.permissions.allow(.admin) && grant.binding == .user(uid)
        default: false
        }
    }

    var grant: Grant? {
        if case .grant(let grant) = standing { grant } else { nil }
    }

    /// Whether it is one that everything is shown to, or whose grant is about that endpoint.
    func sees(_ endpoint: Endpoint) -> Bool {
        isOwner || grant?.permissions.selector.includes(endpoint) ?? false
    }

    /// Whether its grant is about every endpoint, and so about what is no endpoint yet: a phone.
    var seesAll: Bool { isOwner || grant?.permissions.selector == .all }
}
