import AccessControl
import Model

/// The permission that a route requires.
enum RoutePermission: Hashable, Sendable {
    case `public`
    /// A process on this machine, identified by the Unix socket. The process needs no further permission.
    case localProcess
    /// The holder of any grant. The handler checks that the objects belong to the grant.
    case grantHolder
    /// The holder of a grant with this scope. The handler checks the endpoints.
    case scope(Scope)
    case owner
    /// A host of the team by its certificate, without a client of it.
    case member

    /// The next step of a client that is no owner.
    private static let ownerHint = "run it as an owner: on the broker's machine, or with --broker ssh://USER@HOST"

    /// Returns the error for a connection on which the kernel does not identify the process.
    private static func notLocal(_ source: RequestSource) -> Problem {
        guard case .socket = source else {
            return Problem(
                .forbidden,
                "this request is accepted on the Unix socket only",
                hint: "run it on the broker's machine, without --broker"
            )
        }
        return Problem(
            .forbidden,
            "this Unix socket is for one grant, and accepts no request for another one",
            hint: "ask an owner of the broker for a socket with other permissions: patchbay pair --socket PATH"
        )
    }

    /// Throws unless the principal has this permission. An owner always has the permission. No other code makes this
    /// decision.
    ///
    /// - Throws: `AccessError.refused` for an anonymous client without a key; `Problem` for any other client, or if only
    ///   the Unix socket is allowed.
    func authorize(_ principal: Principal) throws {
        if self == .public || principal.isOwner { return }
        switch (self, principal.role) {
        case (.localProcess, .localUser), (.localProcess, .grant):
            guard case .unix = principal.source else { throw Self.notLocal(principal.source) }
        case (.localProcess, .anonymous): throw Self.notLocal(principal.source)
        case (.member, .member(let client)) where client.caller == nil: return
        case (_, .member(let client)): try authorize(client, as: principal)
        case (_, .anonymous) where principal.key != nil:
            throw Problem(
                .unauthorized,
                "no valid grant is bound to the key of this client; it has expired, was revoked, or never existed",
                hint: "ask an owner of the broker for an invite (patchbay pair --remote), then patchbay join -"
            )
        case (_, .anonymous): throw AccessError.refused
        case (_, .localUser):
            throw Problem(
                .forbidden,
                "user \(principal.user.map(String.init) ?? "?") is not an owner of this broker, and sent no token",
                hint: "\(Problem.askHint); an owner can also put you in the group \(OwnerPolicy.groupName)"
            )
        case (.grantHolder, .grant): return
        case (.scope(let scope), .grant(let grant)):
            if principal.isRemote, grant.permissions.allow(scope), !principal.may(scope) {
                throw Problem(
                    .forbidden,
                    "the scope \(scope.rawValue) is not available over the remote listener",
                    hint: Self.ownerHint
                )
            }
            guard principal.may(scope) else {
                throw Problem(
                    .forbidden,
                    "grant \(grant.id) does not allow \(scope.rawValue)\(principal.exclusion(of: scope))",
                    hint: scope.isLocalOnly || principal.isRemote && scope == .inviteCreate
                        ? Self.ownerHint : "ask an owner for another invite: \(scope.pairCommand)"
                )
            }
        default:
            throw Problem(
                .forbidden,
                "only an owner of this broker may do that, on the Unix socket",
                hint: Self.ownerHint
            )
        }
    }

    /// Throws unless a client of another host has this permission, by what the broker of that host asserted.
    private func authorize(_ client: MemberClient, as principal: Principal) throws(Problem) {
        guard client.caller != nil else {
            throw Problem(
                .forbidden,
                "the request of host \(client.host) names no client: the header \(TeamCaller.header) is missing",
                hint: "update patchbayd on \(client.host)"
            )
        }
        switch self {
        case .public, .grantHolder: return
        case .scope(let scope):
            guard principal.may(scope) else {
                throw Problem(
                    .forbidden,
                    scope.isHostOnly
                        ? "the scope \(scope.rawValue) is not available to clients of other hosts"
                        : "\(client.name) has no grant with \(scope.rawValue)\(principal.exclusion(of: scope))",
                    hint: scope.isHostOnly
                        ? Self.ownerHint : "ask an owner of the broker on \(client.host) for a grant with it"
                )
            }
        case .localProcess, .owner, .member:
            throw Problem(
                .forbidden,
                "only an owner of this broker may do that, on its own host",
                hint: Self.ownerHint
            )
        }
    }
}
