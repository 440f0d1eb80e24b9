import AccessControl
import FoundationEssentials
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import Model
import NIOCore
import Registry
import Synchronization

/// One request, as a route's handler sees it.
struct APIRequest: Sendable {
    let request: Request
    let parameters: Parameters
    let visitor: Principal
    let channel: any Channel
    let broker: APIServices
    let aftermath: RequestCleanup
    let late: DeferredResponse
    let departures: DisconnectHandler

    /// The most bytes a body may have; every document we take is far smaller.
    static let bodyLimit = 64 * 1_024

    /// The parameter in the route's path, percent-decoded.
    func parameter(_ name: String) throws -> String {
        guard let value = parameters.get(name) else { throw Problem(.badRequest, "the address lacks its \(name)") }
        return value
    }

    func endpointID() throws -> EndpointID {
        let text = try parameter("id")
        guard let id = EndpointID(text) else {
            throw Problem(.notFound, "\"\(SanitizedText(text))\" is not an endpoint id", next: "patchbay list")
        }
        return id
    }

    /// A number in the query, nil when it is not there.
    func query<Number: FixedWidthInteger>(_ name: String, as type: Number.Type) throws -> Number? {
        guard let text = request.uri.queryParameters.get(name) else { return nil }
        guard let number = Number(text) else {
            throw Problem(.badRequest, "the query's \(name) must be a whole number, not \"\(SanitizedText(text))\"")
        }
        return number
    }

    /// The body, which must be one JSON document of the given kind.
    func body<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        try checkMedia()
        return try decode(type, try await collect(upTo: Self.bodyLimit))
    }

    /// The body, which is not read at all where its head says already that it is too large.
    func collect(upTo limit: Int) async throws -> ByteBuffer {
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw Self.tooLarge(limit)
        }
        do { return try await request.body.collect(upTo: limit) } catch is NIOTooManyBytesError {
            throw Self.tooLarge(limit)
        }
    }

    /// The body of a request that is answered with a stream, read no further than its last byte.
    ///
    /// `ServerSentEventStream` waits for the connection's end by reading on, and Hummingbird's body cannot be read again once its end
    /// has been: it would take the process down (a source that is never finished). So the length must be known.
    func bodyOfHeldRequest<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        try checkMedia()
        guard let length = request.headers[.contentLength].flatMap({ Int($0) }), length > 0 else {
            throw Problem(.badRequest, "the body must come with its Content-Length here")
        }
        guard length <= Self.bodyLimit else { throw Self.tooLarge(Self.bodyLimit) }
        var body = ByteBuffer()
        for try await part in request.body {
            body.writeImmutableBuffer(part)
            if body.readableBytes >= length { break }
        }
        return try decode(type, body)
    }

    private static func tooLarge(_ limit: Int) -> Problem {
        Problem(.tooLarge, "the body has more than \(limit) bytes")
    }

    func checkMedia() throws {
        let media = request.headers[.contentType]?.split(separator: ";").first?.trimmed
        guard media == "application/json" else {
            throw Problem(.unsupportedMedia, "the body must be JSON, with the header Content-Type: application/json")
        }
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ body: ByteBuffer) throws -> Value {
        let bytes = Array(body.readableBytesView)
        do {
            return try JSONCoding.decoder().decode(type, from: Data(bytes))
        } catch let error as DecodingError {
            throw Problem(.badRequest, error.sentence(about: bytes), next: "GET /openapi.json has what goes where")
        }
    }

    /// A response with a JSON document.
    func answer(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let body = try JSONCoding.encoder().encode(value)
        return Response(
            status: status,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: body))
        )
    }

    var nothing: Response { Response(status: .noContent) }
}

extension Substring {
    fileprivate var trimmed: String { self.filter { $0 != " " }.lowercased() }
}

/// What belongs to one request beside the request: above all, who makes it.
struct APIRequestContext: RequestContext {
    /// What is known before the routes are asked.
    struct Source: RequestContextSource {
        let application: ApplicationRequestContextSource
        let channel: any Channel
        let visitor: Principal
        let aftermath: RequestCleanup
        let late: DeferredResponse
        let departures: DisconnectHandler
        let delivery: PendingResponse

        var logger: Logger { application.logger }
    }

    var coreContext: CoreRequestContextStorage
    /// The connection that it came through.
    let channel: any Channel
    let visitor: Principal
    let aftermath: RequestCleanup
    let late: DeferredResponse
    let departures: DisconnectHandler
    let delivery: PendingResponse

    init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source.application)
        channel = source.channel
        visitor = source.visitor
        aftermath = source.aftermath
        late = source.late
        departures = source.departures
        delivery = source.delivery
    }
}

/// What is to be cleared away when a request is over, however it ends: answered, broken off, or gone before its answer.
final class RequestCleanup: Sendable {
    typealias Duty = @Sendable () async -> Void

    private let duties = Mutex<[Duty]>([])

    func add(_ duty: @escaping Duty) { duties.withLock { $0.append(duty) } }

    /// Does each of them once; last in, first out.
    func clear() async {
        while let duty = duties.withLock({ $0.popLast() }) { await duty() }
    }
}

/// An answer that decides by itself when its head is sent, and which: a document when it is short, a stream when something
/// is to be told first. A route leaves it here and returns an empty response, which is not sent.
final class DeferredResponse: Sendable {
    typealias Answer = @Sendable (consuming ResponseWriter) async throws -> Void

    private let answer = Mutex<Answer?>(nil)

    func set(_ new: @escaping Answer) { answer.withLock { $0 = new } }

    func take() -> Answer? {
        answer.withLock { answer in
            defer { answer = nil }
            return answer
        }
    }
}

/// What of the list this caller sees, and what it may have dialled.
extension APIRequest {
    /// The endpoint in the path, if the caller sees it; one that it does not see is not there.
    func endpoint() async throws -> Endpoint { try await endpoint(try endpointID()) }

    func endpoint(_ id: EndpointID) async throws -> Endpoint {
        let endpoint = try await broker.registry.endpoint(id)
        guard visitor.sees(endpoint) else { throw RegistryError.noSuchEndpoint(id.text) }
        return endpoint
    }

    /// Those that the caller sees.
    func seen(_ endpoints: [Endpoint]) -> [Endpoint] { endpoints.filter(visitor.sees) }

    /// Makes sure that an owner has approved a route of the endpoint. An owner's own use is no approval: it would approve
    /// whichever address an advert gives at that moment.
    ///
    /// An endpoint that is nowhere now passes: it is looked at again when it is dialled.
    func checkTrust(in endpoint: Endpoint) async throws {
        let approval = await broker.pairing.approval(of: endpoint.id)
        guard let refusal = ApprovalPolicy.refusal(of: endpoint, approval) else { return }
        throw Problem(.forbidden, refusal.detail, next: refusal.next)
    }
}
