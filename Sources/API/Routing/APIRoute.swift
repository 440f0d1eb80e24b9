import AccessControl
import HTTPTypes
import HummingbirdCore
import Model

/// One row of the route table: method and path, permission, documents and handler.
struct APIRoute: Sendable {
    typealias Handler = @Sendable (APIRequest) async throws -> APIResponse

    /// An optional parameter of the query.
    struct Query: Sendable {
        /// The JSON Schema type of the parameter.
        enum ValueType: String, Sendable {
            case integer
            case string
        }

        let name: String
        let type: ValueType
        let summary: String

        static func integer(_ name: String, _ summary: String) -> Query {
            Query(name: name, type: .integer, summary: summary)
        }

        static func string(_ name: String, _ summary: String) -> Query {
            Query(name: name, type: .string, summary: summary)
        }
    }

    /// A header of a successful response.
    struct ResponseHeader: Sendable {
        let name: String
        let values: [String]
        let summary: String
    }

    /// The rules for the requests and the errors of a route.
    enum Kind: Sendable {
        /// A resource of the API. An unknown parameter, an unknown member or a trailing slash is an error.
        case resource
        /// A document or a page for browsers and other programs, whose further parameters are ignored.
        case document
        /// An MCP server, whose errors are messages of MCP.
        case mcpServer
    }

    let method: HTTPRequest.Method
    /// The path with parameters in braces, as in OpenAPI.
    let path: String
    let permission: RoutePermission
    /// One line of plain text for the OpenAPI document. It is put there without escapes.
    let summary: String
    var query: [Query] = []
    /// The schema of the request body in the OpenAPI document; nil without a body.
    var requestSchema: String?
    /// The schema of the response body; nil for status 204. `events` is an event stream, `file`
    /// any media type, and `stream` an upgraded connection.
    var responseSchema: String?
    var responseHeader: ResponseHeader?
    /// The reason for status 503, for routes that depend on another program. One line of plain text.
    var unavailableWhen: String?
    /// True for status 201.
    var returnsCreated = false
    /// The way in which the route serves a request for an endpoint of another host.
    var otherHosts = OtherHosts.here
    /// True when the response is sent even if the request revokes its own grant.
    var survivesGrantRevocation = false
    var kind = Kind.resource
    let handler: Handler
}

/// Rows of the route table, by method.
extension APIRoute {
    /// The route with another service for endpoints of other hosts.
    func on(_ otherHosts: OtherHosts) -> APIRoute {
        var route = self
        route.otherHosts = otherHosts
        return route
    }

    /// The route with the rules of another kind.
    func of(_ kind: Kind) -> APIRoute {
        var route = self
        route.kind = kind
        return route
    }

    /// The route with a description of its status 503.
    func unavailable(when reason: String) -> APIRoute {
        var route = self
        route.unavailableWhen = reason
        return route
    }

    static func get(
        _ path: String,
        _ permission: RoutePermission,
        _ summary: String,
        query: [Query] = [],
        returns response: String,
        _ handler: @escaping Handler
    ) -> APIRoute {
        APIRoute(
            method: .get,
            path: path,
            permission: permission,
            summary: summary,
            query: query,
            responseSchema: response,
            handler: handler
        )
    }

    /// A POST that does something, and returns 200 or 204.
    static func post(
        _ path: String,
        _ permission: RoutePermission,
        _ summary: String,
        takes request: String? = nil,
        returns response: String? = nil,
        _ handler: @escaping Handler
    ) -> APIRoute {
        APIRoute(
            method: .post,
            path: path,
            permission: permission,
            summary: summary,
            requestSchema: request,
            responseSchema: response,
            handler: handler
        )
    }

    /// A POST that creates an object from its body, and returns 201.
    static func create(
        _ path: String,
        _ permission: RoutePermission,
        _ summary: String,
        query: [Query] = [],
        takes request: String? = nil,
        returns response: String,
        survivesRevocation: Bool = false,
        _ handler: @escaping Handler
    ) -> APIRoute {
        var route = post(path, permission, summary, takes: request, returns: response, handler)
        route.returnsCreated = true
        route.query = query
        route.survivesGrantRevocation = survivesRevocation
        return route
    }

    static func put(
        _ path: String,
        _ permission: RoutePermission,
        _ summary: String,
        takes request: String? = nil,
        returns response: String? = nil,
        header: ResponseHeader? = nil,
        _ handler: @escaping Handler
    ) -> APIRoute {
        APIRoute(
            method: .put,
            path: path,
            permission: permission,
            summary: summary,
            requestSchema: request,
            responseSchema: response,
            responseHeader: header,
            handler: handler
        )
    }

    static func patch(
        _ path: String,
        _ permission: RoutePermission,
        _ summary: String,
        takes request: String,
        returns response: String,
        _ handler: @escaping Handler
    ) -> APIRoute {
        APIRoute(
            method: .patch,
            path: path,
            permission: permission,
            summary: summary,
            requestSchema: request,
            responseSchema: response,
            handler: handler
        )
    }

    static func delete(
        _ path: String,
        _ permission: RoutePermission,
        _ summary: String,
        returns response: String? = nil,
        survivesRevocation: Bool = false,
        _ handler: @escaping Handler
    ) -> APIRoute {
        APIRoute(
            method: .delete,
            path: path,
            permission: permission,
            summary: summary,
            responseSchema: response,
            survivesGrantRevocation: survivesRevocation,
            handler: handler
        )
    }
}

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
                hint: "patchbay ask requests access; an owner can also put you in the group \(OwnerPolicy.groupName)"
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
                        ? Self.ownerHint : "ask an owner for another invite: patchbay pair --scope \(scope.rawValue)"
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
        case .localProcess, .owner:
            throw Problem(
                .forbidden,
                "only an owner of this broker may do that, on its own host",
                hint: Self.ownerHint
            )
        }
    }
}
