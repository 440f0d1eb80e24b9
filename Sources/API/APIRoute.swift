import HTTPTypes
import Hummingbird

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
