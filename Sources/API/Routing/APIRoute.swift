import AccessControl
import HTTPTypes
import Hummingbird
import Model

/// One address of the API: what it is called, who may call it, what it does, and who does it.
struct APIRoute: Sendable {
    typealias Handler = @Sendable (APIRequest) async throws -> Response

    /// A member of the query.
    struct Query: Sendable {
        enum Kind: String, Sendable {
            case integer
            case string
        }

        let name: String
        let kind: Kind
        let summary: String

        init(_ name: String, _ kind: Kind, _ summary: String) {
            self.name = name
            self.kind = kind
            self.summary = summary
        }
    }

    let method: HTTPRequest.Method
    /// With parameters in braces, as OpenAPI writes them.
    let path: String
    let access: RoutePermission
    let summary: String
    let query: [Query]
    /// Names of schemas in the OpenAPI document; nil where there is no body.
    let takes: String?
    let gives: String?
    /// Whether it is answered with 201.
    let creates: Bool
    /// Whether it is answered although it may end the grant that it came under.
    let outlivesGrant: Bool
    let handler: Handler

    init(
        _ method: HTTPRequest.Method,
        _ path: String,
        _ access: RoutePermission,
        _ summary: String,
        query: [Query] = [],
        takes: String? = nil,
        gives: String? = nil,
        creates: Bool? = nil,
        outlivesGrant: Bool = false,
        _ handler: @escaping Handler
    ) {
        self.method = method
        self.path = path
        self.access = access
        self.summary = summary
        self.query = query
        self.takes = takes
        self.gives = gives
        // A post that takes a description and gives the thing made from it.
        self.creates = creates ?? (method == .post && takes != nil && gives != nil)
        self.outlivesGrant = outlivesGrant
        self.handler = handler
    }
}

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
