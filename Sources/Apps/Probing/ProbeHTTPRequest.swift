import NIOCore
import NIOHTTP1
import NIOPosix
import SystemIO

/// One HTTP/1.1 request and its response over an open connection.
struct ProbeHTTPRequest: Sendable {
    struct Response: Sendable {
        let status: Int
        var contentType: String?
        let body: [UInt8]
    }

    let method: HTTPMethod
    let path: String
    /// Sent as JSON unless empty.
    var body: [UInt8] = []
    var accept = "application/json"
    /// Sent as a bearer token.
    var token: String?

    /// The maximum size of a response in bytes.
    var limit = Self.recognitionLimit

    /// The maximum size of a response in bytes while a server is identified. A server that sends more is not one of the
    /// known servers.
    static let recognitionLimit = 64 * 1_024

    /// - Throws: NIO's errors for a response that is not HTTP; `CancellationError`; `ProbeError`.
    func run(over connection: consuming Connection) async throws -> Response {
        let (descriptor, _, permit) = connection.release()
        // Keep the permit until the channel has closed the descriptor.
        defer { withExtendedLifetime(permit) {} }
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .withConnectedSocket(descriptor) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    return try NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>(
                        wrappingChannelSynchronously: channel
                    )
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            // A server may respond and close before the whole request is sent. The response still counts.
            do { try await outbound.write(contentsOf: request) } catch is ChannelError {}
            return try await read(inbound)
        }
    }

    private var request: [HTTPClientRequestPart] {
        let content = body.isEmpty ? [] : [HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body)))]
        return [.head(head)] + content + [.end(nil)]
    }

    private var head: HTTPRequestHead {
        var headers = HTTPHeaders([("Host", "127.0.0.1"), ("Accept", accept), ("Connection", "close")])
        if let token { headers.add(name: "Authorization", value: "Bearer \(token)") }
        if !body.isEmpty { headers.add(name: "Content-Type", value: "application/json") }
        if !body.isEmpty || method != .GET { headers.add(name: "Content-Length", value: "\(body.count)") }
        return HTTPRequestHead(version: .http1_1, method: method, uri: path, headers: headers)
    }

    private func read(_ parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>) async throws -> Response {
        var status = 0
        var contentType: String?
        var body: [UInt8] = []
        for try await part in parts {
            switch part {
            case .head(let head):
                status = Int(head.status.code)
                contentType = head.headers.first(name: "Content-Type")
            case .body(let buffer):
                body += buffer.readableBytesView
                guard body.count <= limit else { throw ProbeError.responseTooLarge }
                // The server may keep the event stream open after its response.
                if contentType?.hasPrefix("text/event-stream") == true, let message = Self.message(in: body) {
                    return Response(status: status, contentType: contentType, body: message)
                }
            case .end: return Response(status: status, contentType: contentType, body: body)
            }
        }
        throw ProbeError.unexpectedEOF
    }

    /// The data of the first complete server-sent event that contains a JSON object (HTML standard); nil if there is
    /// none yet.
    static func message(in stream: [UInt8]) -> [UInt8]? {
        var data: [Substring] = []
        // An empty line ends an event.
        for line in String(decoding: stream, as: UTF8.self).split(
            omittingEmptySubsequences: false,
            whereSeparator: \.isNewline
        ).dropLast() {
            if line.hasPrefix("data:") {
                data.append(line.dropFirst("data:".count))
            } else if line.isEmpty {
                let text = data.joined(separator: "\n")
                if text.contains("{") { return Array(text.utf8) }
                data = []
            }
        }
        return nil
    }
}

extension ProbeHTTPRequest {
    /// Creates a request of a profile, without the endpoint's secret and without a session.
    init(_ request: ProfileRequest, limit: Int = Self.recognitionLimit) {
        self.init(
            method: HTTPMethod(rawValue: request.method),
            path: request.target,
            body: request.body ?? [],
            accept: "*/*",
            limit: limit
        )
    }
}
