import FoundationEssentials
import Hummingbird
import HTTPTypes
import Model
import NIOCore

/// One request, as a route's handler sees it.
struct Call: Sendable {
    let request: Request
    let parameters: Parameters
    let broker: Broker

    /// The most bytes a body may have; every document we take is far smaller.
    static let bodyLimit = 4 * 1_024 * 1_024

    /// The parameter in the route's path, percent-decoded.
    func parameter(_ name: String) throws -> String {
        guard let value = parameters.get(name) else { throw Problem(.badRequest, "the address lacks its \(name)") }
        return value
    }

    func endpointID() throws -> EndpointID {
        let text = try parameter("id")
        guard let id = EndpointID(text) else {
            throw Problem(.notFound, "\"\(Untrusted(text))\" is not an endpoint id", next: "patchbay list")
        }
        return id
    }

    /// A number in the query, nil when it is not there.
    func query<Number: FixedWidthInteger>(_ name: String, as type: Number.Type) throws -> Number? {
        guard let text = request.uri.queryParameters.get(name) else { return nil }
        guard let number = Number(text) else {
            throw Problem(.badRequest, "the query's \(name) must be a whole number, not \"\(Untrusted(text))\"")
        }
        return number
    }

    /// The body, which must be one JSON document of the given kind.
    func body<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        let media = request.headers[.contentType]?.split(separator: ";").first?.trimmed
        guard media == "application/json" else {
            throw Problem(.badRequest, "the body must be JSON, with the header Content-Type: application/json")
        }
        let buffer: ByteBuffer
        do {
            buffer = try await request.body.collect(upTo: Self.bodyLimit)
        } catch is NIOTooManyBytesError {
            throw Problem(.tooLarge, "the body has more than \(Self.bodyLimit) bytes")
        }
        do {
            return try Wire.decoder().decode(type, from: Data(buffer.readableBytesView))
        } catch let error as DecodingError {
            throw Problem(.badRequest, error.sentence)
        }
    }

    /// A response with a JSON document.
    func answer(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let body = try Wire.encoder().encode(value)
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

extension DecodingError {
    /// What is wrong where, for the person who wrote the document.
    var sentence: String {
        func place(_ context: Context) -> String {
            let path = context.codingPath.map(\.stringValue).joined(separator: ".")
            return path.isEmpty ? "the body" : "\"\(Untrusted(path, limit: 200))\""
        }
        return switch self {
        case .keyNotFound(let key, let context): "\(place(context)) lacks \"\(key.stringValue)\""
        case .typeMismatch(let type, let context): "\(place(context)) must be of the type \(type)"
        case .valueNotFound(let type, let context): "\(place(context)) must be of the type \(type), not null"
        case .dataCorrupted(let context): "\(place(context)) cannot be read: \(context.debugDescription)"
        @unknown default: "the body cannot be read"
        }
    }
}
