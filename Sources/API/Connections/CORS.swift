import HTTPTypes
import Model
import NIOCore
import NIOHTTP1

/// The protocol by which a browser lets a page of another origin use the API (WHATWG Fetch, section 3.3).
///
/// Only origins of `api.allowed_origins` get the headers: never `*`, and never the permission for credentials. A page has
/// to send a token itself, so the cookies and passwords of the browser open nothing.
enum CORS {
    /// The time in seconds for which a browser keeps the answer to a preflight.
    private static let maxAge = 600
    private static let methods = [HTTPRequest.Method.get, .post, .put, .patch, .delete].map(\.rawValue)
    /// The headers of responses that a page may read, besides those that browsers always show (section 3.3.3).
    private static let exposed = [
        "Allow", "ETag", "Mcp-Session-Id", "MCP-Protocol-Version", "Retry-After", "WWW-Authenticate",
        SecretTrial.header,
    ]

    /// The request header for a page of a public site that asks a local server (WICG Private Network Access, section 3).
    private static let privateNetworkRequest = HTTPField.Name("Access-Control-Request-Private-Network")
    private static let privateNetworkResponse = HTTPField.Name("Access-Control-Allow-Private-Network")

    /// Returns the headers of the answer to a preflight of an allowed origin, besides those of every response.
    ///
    /// Every method and header is allowed, because the actual request meets the same checks as one of any other client.
    /// Its answer tells the page more than a failed preflight.
    static func preflightHeaders(for request: HTTPRequest) -> HTTPFields {
        var fields: HTTPFields = [
            .accessControlAllowMethods: methods.joined(separator: ", "), .accessControlMaxAge: "\(maxAge)",
        ]
        let names = request.headerFields[values: .accessControlRequestHeaders]
            .flatMap { $0.split { $0 == "," || $0 == " " || $0 == "\t" } }.compactMap { HTTPField.Name(String($0)) }
        if !names.isEmpty {
            fields[.accessControlAllowHeaders] = names.map(\.canonicalName).joined(separator: ", ")
        }
        if let asked = privateNetworkRequest, request.headerFields[asked] == "true", let name = privateNetworkResponse {
            fields[name] = "true"
        }
        return fields
    }

    /// Sets the headers of a response.
    ///
    /// - Parameters:
    ///   - headers: The headers of the response.
    ///   - origin: The origin of the page, which is allowed; nil for any other client.
    static func setHeaders(_ headers: inout HTTPHeaders, origin: String?) {
        // Also without an origin: a cache must not give such a response to a page.
        headers.add(name: "Vary", value: "Origin")
        guard let origin else { return }
        headers.add(name: "Access-Control-Allow-Origin", value: origin)
        headers.add(name: "Access-Control-Expose-Headers", value: exposed.joined(separator: ", "))
    }
}

/// Adds the headers of CORS to every response of a connection, also to errors and event streams.
final class CORSHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let allowedOrigins: Set<String>
    /// The allowed origin of each request without a complete response, in the order of the requests.
    private var origins = CircularBuffer<String?>()

    init(allowedOrigins: Set<String>) { self.allowedOrigins = allowedOrigins }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data) {
            let named = head.headers["Origin"]
            origins.append(named.count == 1 && allowedOrigins.contains(named[0]) ? named[0] : nil)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status.code >= 200:
            CORS.setHeaders(&head.headers, origin: origins.first ?? nil)
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            _ = origins.popFirst()
            context.write(data, promise: promise)
        case .head, .body:
            context.write(data, promise: promise)
        }
    }
}
