import HTTPTypes
import HummingbirdCore

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
