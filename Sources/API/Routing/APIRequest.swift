import AccessControl
import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import Registry
import Synchronization

/// The input of a route handler: the HTTP request, its route, its principal, its connection and the services.
struct APIRequest: Sendable {
    let httpRequest: Request
    let route: APIRoute
    /// The parts of the path that stand for the parameters of the route.
    let parameters: [Substring: Substring]
    let principal: Principal
    /// The address of the broker for OAuth; nil without OAuth on this listener.
    var issuer: OAuthIssuer?
    let channel: any Channel
    let services: APIServices
    let cleanup: RequestCleanup
    let disconnectHandler: DisconnectHandler
    let limiter: ConnectionLimiter
    let pendingResponse: PendingResponse

    /// The maximum size of a JSON body in bytes. Every document of the API is far smaller. MCP bodies have their own
    /// limit.
    static let maxBodySize = 64 * 1_024
    private static let schemaHint = "see the schemas in GET /openapi.json"

    /// Returns a parameter of the route's path, without percent-encoding.
    func parameter(_ name: String) throws -> String {
        guard let value = parameters[name[...]] else { throw Problem(.badRequest, "the path has no parameter \(name)") }
        return LeakedTokenDetector.percentDecoded(String(value))
    }

    func endpointID() throws -> EndpointID { try endpointID(try parameter("id")) }

    /// Parses an ID. This broker's own endpoints may be named with its host.
    func endpointID(_ text: String) throws -> EndpointID {
        guard let id = EndpointID(text) else {
            throw Problem(.notFound, "\"\(SanitizedText(text))\" is not an endpoint id", hint: "patchbay list")
        }
        return local(id)
    }

    /// Returns an ID without the name of this broker's own host.
    func local(_ id: EndpointID) -> EndpointID { id.host != nil && id.host == principal.host ? id.onItsHost : id }

    /// Throws if the team lacks one of the hosts.
    func require(_ hosts: Set<HostName>) throws(RegistryError) {
        guard let teamHosts = services.endpoints.hosts else { return }
        if let host = hosts.filter(teamHosts.lacks).min() { throw .noSuchHost(host) }
    }

    /// Returns a number of the query; nil if the parameter is absent.
    func query<Number: FixedWidthInteger>(_ name: String, as type: Number.Type) throws -> Number? {
        guard let text = query(name) else { return nil }
        guard let number = Number(text) else {
            throw Problem(.badRequest, "the query's \(name) must be a whole number, not \"\(SanitizedText(text))\"")
        }
        return number
    }

    /// Returns a text of the query; nil if the parameter is absent.
    func query(_ name: String) -> String? { httpRequest.uri.queryParameters[name[...]].map(String.init) }

    /// Throws if the query has a parameter that the route does not have.
    func requireKnownParameters() throws(Problem) {
        try QueryParameterCheck.check(httpRequest.uri.queryParameters.map { String($0.key) }, of: route)
    }

    /// Decodes the body, which must be one JSON document.
    func body<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        try requireJSON()
        return try decode(type, try await collect(upTo: Self.maxBodySize))
    }

    /// Reads the body. If Content-Length is above the limit, nothing is read.
    func collect(upTo limit: Int) async throws -> ByteBuffer {
        if let length = httpRequest.headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw Self.tooLarge(limit)
        }
        channel.acceptBody(of: httpRequest.head)
        do { return try await httpRequest.body.collect(upTo: limit) } catch is NIOTooManyBytesError {
            throw Self.tooLarge(limit)
        }
    }

    /// Decodes the body of a request that is answered with a stream. Reads no further than the last byte of the body.
    ///
    /// `ServerSentEventStream` detects the end of the connection by reading on. Hummingbird's body must not be read
    /// again after its end, or the process crashes (a source that is never finished). The length must therefore be
    /// known.
    func streamingRequestBody<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        try requireJSON()
        guard let length = httpRequest.headers[.contentLength].flatMap({ Int($0) }), length > 0 else {
            throw Problem(.badRequest, "the body of this request must have a Content-Length")
        }
        guard length <= Self.maxBodySize else { throw Self.tooLarge(Self.maxBodySize) }
        channel.acceptBody(of: httpRequest.head)
        var body = ByteBuffer()
        for try await part in httpRequest.body {
            body.writeImmutableBuffer(part)
            if body.readableBytes >= length { break }
        }
        return try decode(type, body)
    }

    private static func tooLarge(_ limit: Int) -> Problem {
        Problem(.tooLarge, "the body has more than \(limit) bytes")
    }

    func requireJSON() throws {
        let media = httpRequest.headers[.contentType]?.split(separator: ";").first?.trimmed
        guard media == "application/json" else {
            throw Problem(.unsupportedMedia, "the body must be JSON, with the header Content-Type: application/json")
        }
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ body: ByteBuffer) throws -> Value {
        let bytes = Array(body.readableBytesView.withoutByteOrderMark)
        try checkMembers(of: bytes)
        do {
            return try JSONCoding.decoder().decode(type, from: Data(bytes))
        } catch let error as DecodingError {
            throw Problem(.badRequest, error.userMessage(for: bytes), hint: Self.schemaHint)
        }
    }

    /// Throws unless the body is JSON, and all its members are in the schema of the route.
    private func checkMembers(of bytes: [UInt8]) throws(Problem) {
        let json: JSON
        do { json = try JSON(parsing: bytes) } catch {
            throw Problem(.badRequest, "the body cannot be read: \(error)", hint: Self.schemaHint)
        }
        try UnknownMemberCheck.check(json, against: route.requestSchema)
    }

    /// False for a request that declares no body, or an empty one.
    var hasBody: Bool {
        let headers = httpRequest.headers
        return headers[.transferEncoding] != nil || headers[.contentLength] ?? "0" != "0"
    }

    /// Throws if the request has a body with members, and its route has none. Otherwise a client could believe that
    /// the broker has read them.
    func requireNoMembers() async throws {
        guard hasBody else { return }
        let body = try await collect(upTo: Self.maxBodySize)
        if body.readableBytes > 0 { try checkMembers(of: Array(body.readableBytesView)) }
    }
}

extension Substring {
    fileprivate var trimmed: String { self.filter { $0 != " " }.lowercased() }
}

/// Actions that run when a request ends: after its response, an error or a disconnect.
final class RequestCleanup: Sendable {
    typealias Action = @Sendable () async -> Void

    private let actions = Mutex<[Action]>([])

    func add(_ action: @escaping Action) { actions.withLock { $0.append(action) } }

    /// Runs each action once, in reverse order.
    func run() async {
        while let action = actions.withLock({ $0.popLast() }) { await action() }
    }
}

/// Endpoints that the principal may see and connect to.
extension APIRequest {
    /// Returns the endpoint of the path. An endpoint that the principal may not see is reported as missing.
    func endpoint() async throws -> Endpoint { try await endpoint(try endpointID()) }

    func endpoint(_ id: EndpointID) async throws -> Endpoint {
        let endpoint = try await services.endpoints.endpoint(local(id))
        guard principal.canSee(endpoint) else { throw RegistryError.noSuchEndpoint(id.text) }
        return services.views(of: [endpoint], for: principal)[0]
    }

    /// Returns the endpoints that the principal may see.
    func visible(_ endpoints: [Endpoint]) -> [Endpoint] {
        services.views(of: endpoints.filter(principal.canSee), for: principal)
    }

    /// Throws unless an owner has approved a route. Also for an owner: the use would approve any address that an
    /// advertisement announces at that moment. An endpoint without routes passes, and is checked again at a connection.
    func requireApproval(of endpoint: Endpoint) async throws {
        let trust = services.accessStore.approvals.trust(of: endpoint.id)
        guard let refusal = ApprovalPolicy.refusal(of: endpoint, trust) else { return }
        throw Problem(.forbidden, refusal.detail, hint: refusal.hint)
    }
}
