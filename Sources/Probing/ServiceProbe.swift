import FoundationEssentials
import Model
import NIOCore
import NIOHTTP1
import NIOPosix
import SystemIO

/// The requests that identify known servers, and the parsers of their responses.
///
/// All requests are free of side effects and need no secret. AppReveal serves `GET /health` without its session token,
/// and app-debug lists its actions. Every MCP server answers `initialize`, over HTTP or in lines.
enum ServiceProbe {
    static let health = ProbeHTTPRequest(method: .GET, path: "/health")
    static let actions = ProbeHTTPRequest(method: .GET, path: "/actions")
    static let initializeMessage = """
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},\
        "clientInfo":{"name":"patchbay","version":"\(Version.text)"}}}
        """
    /// The paths of MCP servers, the usual one first. Servers built with the official SDKs return 404 for other paths.
    static let initialize = ["/mcp", "/"].map { path in
        ProbeHTTPRequest(
            method: .POST,
            path: path,
            body: initializeMessage,
            accept: "application/json, text/event-stream"
        )
    }
    static let initializeLine = LineExchange(message: initializeMessage)
    /// Calls the tool `launch_context`. AppReveal up to 0.9 answers without a token; 0.10 and later require the session
    /// token.
    static func launchContext(token: String? = nil) -> ProbeHTTPRequest {
        ProbeHTTPRequest(
            method: .POST,
            path: "/",
            body: """
                {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"launch_context","arguments":{}}}
                """,
            token: token
        )
    }

    /// Parses AppReveal's health response: an object with the port and the authentication or discovery mode.
    ///
    /// - Returns: Nil for any other response. Includes the launch ID if the app reports one.
    static func appReveal(_ response: ProbeHTTPRequest.Response) -> ServerIdentity? {
        struct Health: Decodable {
            let status: String
            let port: Int
            let auth: String?
            let bonjour: AnyValue?
            let discovery: AnyValue?
            let boot: String?
            let bundleId: String?
        }
        guard response.status == 200, let health = decode(Health.self, response),
            health.auth != nil || health.bonjour != nil || health.discovery != nil
        else { return nil }
        return ServerIdentity(
            kind: .appreveal,
            app: health.bundleId.map { SanitizedText($0, limit: 155) },
            launchID: health.boot.map { SanitizedText($0) },
            wantsToken: health.auth == "session-token"
        )
    }

    /// Returns true for app-debug's list of actions, an array of strings. app-debug has no `/health`, so a server that
    /// returns the same body for both paths is rejected.
    static func isAppDebug(_ response: ProbeHTTPRequest.Response, beside health: ProbeHTTPRequest.Response?) -> Bool {
        guard response.status == 200, decode([String].self, response) != nil else { return false }
        return health.map { $0.status != 200 || $0.body != response.body } ?? true
    }

    /// Parses the server's name and version from an `initialize` result; nil for any other response.
    static func server(_ response: ProbeHTTPRequest.Response, inLines takesLines: Bool = false) -> ServerIdentity? {
        struct Reply: Decodable {
            struct Result: Decodable {
                struct Info: Decodable {
                    let name: String
                    let version: String?
                }
                let protocolVersion: String
                let serverInfo: Info
            }
            let result: Result
        }
        guard let result = decode(Reply.self, response)?.result else { return nil }
        let isAppReveal = result.serverInfo.name == "AppReveal"
        return ServerIdentity(
            kind: isAppReveal ? .appreveal : .mcp,
            name: SanitizedText(result.serverInfo.name),
            version: result.serverInfo.version.map { SanitizedText($0) },
            takesLines: takesLines
        )
    }

    /// Parses the app from a `launch_context` result: JSON inside the text of the first content block.
    static func app(_ response: ProbeHTTPRequest.Response) -> (bundleID: SanitizedText, version: SanitizedText?)? {
        struct Reply: Decodable {
            struct Result: Decodable {
                struct Block: Decodable { let text: String? }
                let content: [Block]
            }
            let result: Result
        }
        struct Context: Decodable {
            let bundleId: String
            let version: String?
        }
        guard let text = decode(Reply.self, response)?.result.content.first?.text,
            let context = try? JSONDecoder().decode(Context.self, from: Data(text.utf8))
        else { return nil }
        return (SanitizedText(context.bundleId, limit: 155), context.version.map { SanitizedText($0) })
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ response: ProbeHTTPRequest.Response) -> Value? {
        try? JSONDecoder().decode(type, from: Data(response.body))
    }

    /// Accepts any JSON value. Used to test whether a key is present.
    private struct AnyValue: Decodable {
        init(from decoder: any Decoder) throws {}
    }
}

/// One HTTP/1.1 request and its response over an open connection.
struct ProbeHTTPRequest: Sendable {
    struct Response: Sendable {
        let status: Int
        let body: [UInt8]
    }

    let method: HTTPMethod
    let path: String
    /// Sent as JSON unless empty.
    var body = ""
    var accept = "application/json"
    /// Sent as a bearer token.
    var token: String?

    /// The maximum size of a response in bytes. A server that sends more is not one of the known servers.
    static let limit = 64 * 1_024

    /// - Throws: NIO's errors for a response that is not HTTP; `CancellationError`; `ProbeError`.
    func run(over connection: consuming Connection) async throws -> Response {
        guard connection.initialBytes.isEmpty else { throw ProbeError.unsolicitedData }
        let (descriptor, _, _, permit) = connection.release()
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
        let content = body.isEmpty ? [] : [HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(string: body)))]
        return [.head(head)] + content + [.end(nil)]
    }

    private var head: HTTPRequestHead {
        var headers = HTTPHeaders([("Host", "127.0.0.1"), ("Accept", accept), ("Connection", "close")])
        if let token { headers.add(name: "Authorization", value: "Bearer \(token)") }
        if !body.isEmpty {
            headers.add(name: "Content-Type", value: "application/json")
            headers.add(name: "Content-Length", value: "\(body.utf8.count)")
        }
        return HTTPRequestHead(version: .http1_1, method: method, uri: path, headers: headers)
    }

    private func read(_ parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>) async throws -> Response {
        var status = 0
        var isStream = false
        var body: [UInt8] = []
        for try await part in parts {
            switch part {
            case .head(let head):
                status = Int(head.status.code)
                isStream = head.headers.first(name: "Content-Type")?.hasPrefix("text/event-stream") ?? false
            case .body(let buffer):
                body += buffer.readableBytesView
                guard body.count <= Self.limit else { throw ProbeError.responseTooLarge }
                // The server may keep the event stream open after its response.
                if isStream, let message = Self.message(in: body) { return Response(status: status, body: message) }
            case .end: return Response(status: status, body: body)
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

/// One message and its response for a server with one message per line.
struct LineExchange: Sendable {
    /// The message without its line end.
    let message: String

    /// Returns the first line that contains a JSON object, starting at the object. iMCP sends heartbeats without a line
    /// end before it.
    ///
    /// - Throws: NIO's errors; `CancellationError`; `ProbeError`.
    func run(over connection: consuming Connection) async throws -> [UInt8] {
        guard connection.initialBytes.isEmpty else { throw ProbeError.unsolicitedData }
        let (descriptor, _, _, permit) = connection.release()
        // Keep the permit until the channel has closed the descriptor.
        defer { withExtendedLifetime(permit) {} }
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .withConnectedSocket(descriptor) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: "\(message)\n"))
            var bytes: [UInt8] = []
            for try await buffer in inbound {
                bytes += buffer.readableBytesView
                guard bytes.count <= ProbeHTTPRequest.limit else { throw ProbeError.responseTooLarge }
                guard bytes.contains(UInt8(ascii: "\n")) else { continue }
                for line in bytes.split(separator: UInt8(ascii: "\n")) {
                    if let start = line.firstIndex(of: UInt8(ascii: "{")) { return Array(line[start...]) }
                }
            }
            throw ProbeError.unexpectedEOF
        }
    }
}
