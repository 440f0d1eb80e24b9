import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore

/// The output of a route handler.
enum APIResponse: Sendable {
    typealias Writer = @Sendable (consuming ResponseWriter) async throws -> Void

    case response(Response)
    /// A response that chooses its head late, such as one document for a short result, or a stream with earlier messages.
    /// Also a connection that changes its protocol, which writes nothing here.
    case stream(Writer)

    static let noContent = APIResponse.response(Response(status: .noContent))

    /// Returns a response with a body of a media type.
    static func body(
        _ body: ByteBuffer,
        type: String,
        status: HTTPResponse.Status = .ok,
        headers: HTTPFields = [:]
    ) -> APIResponse {
        var headers = headers
        headers[.contentType] = type
        return .response(Response(status: status, headers: headers, body: ResponseBody(byteBuffer: body)))
    }

    /// Returns a response with a JSON document.
    static func json(_ value: some Encodable) throws -> APIResponse { try json(value, status: .ok) }

    /// Returns a response with a JSON document about a created object.
    static func created(_ value: some Encodable) throws -> APIResponse { try json(value, status: .created) }

    private static func json(_ value: some Encodable, status: HTTPResponse.Status) throws -> APIResponse {
        .body(ByteBuffer(bytes: try JSONCoding.encoder().encode(value)), type: "application/json", status: status)
    }

    /// Returns a response with a JSON value that has no Swift type.
    static func json(_ value: JSON, status: HTTPResponse.Status = .ok) -> APIResponse {
        .body(ByteBuffer(bytes: value.bytes), type: "application/json", status: status)
    }
}
