import HTTPTypes
import Hummingbird
import HummingbirdCore
import MCP
import NIOCore

/// The way back to an agent, over HTTP/1.1.
struct MCPResponseWriter: ~Copyable, MCPResponseBodyWriter {
    private var head: ResponseWriter?
    private var body: (any ResponseBodyWriter)?

    init(_ writer: consuming ResponseWriter) { head = consume writer }

    /// Head and body in one write: in two, the second waits for the acknowledgement of the first (Nagle), for 40 ms.
    mutating func write(_ reply: MCPHTTPResponse) async throws {
        guard let writer = head.take() else { return }
        var fields = Self.fields(reply.headers)
        // RFC 9110, section 8.6: not with 204.
        if reply.status != 204 { fields[.contentLength] = "\(reply.body.count)" }
        let response = HTTPResponse(status: HTTPResponse.Status(code: reply.status), headerFields: fields)
        guard !reply.body.isEmpty else { return try await writer.writeResponse(response) }
        try await writer.write(response: response, body: ResponseBody(byteBuffer: ByteBuffer(bytes: reply.body)))
    }

    mutating func begin(_ headers: [MCPHTTPResponse.Header]) async throws {
        guard let writer = head.take() else { return }
        body = try await writer.writeHead(HTTPResponse(status: .ok, headerFields: Self.fields(headers)))
    }

    mutating func send(_ bytes: [UInt8]) async throws { try await body?.write(ByteBuffer(bytes: bytes)) }

    mutating func end() async throws {
        guard let writer = body.take() else { return }
        try await writer.finish(nil)
    }

    private static func fields(_ headers: [MCPHTTPResponse.Header]) -> HTTPFields {
        var fields = HTTPFields()
        for header in headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            fields[name] = header.value
        }
        APIServer.protect(&fields)
        return fields
    }
}
