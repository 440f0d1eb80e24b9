import Model
import AccessControl

/// Who may make a call: a column of the route table.
enum RoutePermission: Hashable, Sendable {
    case anyone
    /// A process on this machine, known by the unix socket; it need own nothing.
    case local
    /// Whoever holds a grant, whatever it allows; the handler looks whose things it is about.
    case holder
    /// Whoever holds a grant with that scope; the handler looks for which endpoints.
    case scope(Scope)
    case owner

    /// The one place where it is decided. Owners may do everything.
    ///
    /// - Throws: `AccessError.refused` for who has shown nothing; `Problem` for who has, and may not.
    func check(_ visitor: Principal) throws {
        if self == .anyone || visitor.isOwner { return }
        switch (self, visitor.standing) {
        case (.local, .user), (.local, .grant):
            guard case .unix = visitor.origin else {
                throw Problem(.forbidden, "this is asked through the unix socket only")
            }
        case (.local, .stranger): throw Problem(.forbidden, "this is asked through the unix socket only")
        case (_, .stranger): throw AccessError.refused
        case (_, .user):
            throw Problem(
                .forbidden,
                "user \(visitor.user.map(String.init) ?? "?") is no owner of this broker, and showed no token",
                next: "ask an owner for an invite (patchbay pair), or to put you in the group \(OwnerPolicy.groupName)"
            )
        case (.holder, .grant): return
        case (.scope(let scope), .grant(let grant)):
            guard grant.permissions.allow(scope) else {
                throw Problem(.forbidden, "grant \(grant.id) does not allow \(scope.rawValue)")
            }
        default:
            throw Problem(.forbidden, "only an owner of this broker may do that, through the unix socket")
        }
    }
}
