import FoundationEssentials
import Model
import NIOCore
import NIOHTTP1
import NIOPosix
import SystemIO

/// The questions that tell the servers we know apart, and how their answers are read.
///
/// Only questions that change nothing in the app and need no secret: AppReveal leaves `GET /health` open even where its
/// session token is required, app-debug lists its actions, and `initialize` is how every MCP server introduces itself, over
/// HTTP or in lines.
enum ServiceProbe {
    static let health = ProbeHTTPRequest(method: .GET, path: "/health")
    static let actions = ProbeHTTPRequest(method: .GET, path: "/actions")
    static let introduction = """
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},\
        "clientInfo":{"name":"patchbay","version":"\(Version.text)"}}}
        """
    /// Where MCP servers are, the usual place first: those made with the official SDKs answer 404 elsewhere.
    static let initialize = ["/mcp", "/"].map { path in
        ProbeHTTPRequest(
            method: .POST,
            path: path,
            body: introduction,
            accept: "application/json, text/event-stream"
        )
    }
    static let initializeInLines = LineExchange(message: introduction)
    /// AppReveal up to 0.9 answers it to anybody; since 0.10 only to who has the session token.
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

    /// AppReveal's health: an object with its own port and how it authenticates or announces itself.
    ///
    /// - Returns: Nil when the answer is none; of an app that tells its launch also that.
    static func appReveal(_ answer: ProbeHTTPRequest.Answer) -> ServerIdentity? {
        struct Health: Decodable {
            let status: String
            let port: Int
            let auth: String?
            let bonjour: AnyValue?
            let discovery: AnyValue?
            let boot: String?
            let bundleId: String?
        }
        guard answer.status == 200, let health = decode(Health.self, answer),
            health.auth != nil || health.bonjour != nil || health.discovery != nil
        else { return nil }
        return ServerIdentity(
            kind: .appreveal,
            app: health.bundleId.map { SanitizedText($0, limit: 155) },
            boot: health.boot.map { SanitizedText($0) },
            wantsToken: health.auth == "session-token"
        )
    }

    /// app-debug's actions: an array of strings. It has no health, so a server that answers so to everything is none.
    static func isAppDebug(_ answer: ProbeHTTPRequest.Answer, beside health: ProbeHTTPRequest.Answer?) -> Bool {
        guard answer.status == 200, decode([String].self, answer) != nil else { return false }
        return health.map { $0.status != 200 || $0.body != answer.body } ?? true
    }

    /// The name and version in an `initialize` result; nil when the answer is none.
    static func server(_ answer: ProbeHTTPRequest.Answer, inLines takesLines: Bool = false) -> ServerIdentity? {
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
        guard let result = decode(Reply.self, answer)?.result else { return nil }
        let isAppReveal = result.serverInfo.name == "AppReveal"
        return ServerIdentity(
            kind: isAppReveal ? .appreveal : .mcp,
            name: SanitizedText(result.serverInfo.name),
            version: result.serverInfo.version.map { SanitizedText($0) },
            takesLines: takesLines
        )
    }

    /// The app behind AppReveal, as `launch_context` tells it: JSON inside the text of the first content block.
    static func app(_ answer: ProbeHTTPRequest.Answer) -> (bundleID: SanitizedText, version: SanitizedText?)? {
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
        guard let text = decode(Reply.self, answer)?.result.content.first?.text,
            let context = try? JSONDecoder().decode(Context.self, from: Data(text.utf8))
        else { return nil }
        return (SanitizedText(context.bundleId, limit: 155), context.version.map { SanitizedText($0) })
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ answer: ProbeHTTPRequest.Answer) -> Value? {
        try? JSONDecoder().decode(type, from: Data(answer.body))
    }

    /// Any JSON value, present or not.
    private struct AnyValue: Decodable {
        init(from decoder: any Decoder) throws {}
    }
}

/// One HTTP/1.1 request and its answer over a stream that somebody else opened.
struct ProbeHTTPRequest: Sendable {
    struct Answer: Sendable {
        let status: Int
        let body: [UInt8]
    }

    let method: HTTPMethod
    let path: String
    /// Sent as JSON when it is not empty.
    var body = ""
    var accept = "application/json"
    /// Sent as a bearer token.
    var token: String?

    /// What a hello may answer at most, in bytes; the rest is a server that is not what we look for.
    static let limit = 64 * 1_024

    /// - Throws: What NIO throws for an answer that is not HTTP, `CancellationError`, or `ProbeError`.
    func run(over carrier: consuming Connection) async throws -> Answer {
        guard carrier.early.isEmpty else { throw ProbeError.speaksFirst }
        let (descriptor, _, _, lease) = carrier.release()
        // The lease goes when this returns, after the channel has closed the descriptor.
        defer { withExtendedLifetime(lease) {} }
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
            // A server may answer and close before the whole request is out; what it answered counts.
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

    private func read(_ parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>) async throws -> Answer {
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
                guard body.count <= Self.limit else { throw ProbeError.tooMuch }
                // The server may keep the stream open behind its answer.
                if isStream, let message = Self.message(in: body) { return Answer(status: status, body: message) }
            case .end: return Answer(status: status, body: body)
            }
        }
        throw ProbeError.endedEarly
    }

    /// The data of the first whole event that has a JSON object (the HTML standard, server-sent events); nil where none has come.
    static func message(in stream: [UInt8]) -> [UInt8]? {
        var data: [Substring] = []
        // An event ends with an empty line.
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

/// One message to a server that takes a message a line, and the line that it answers with.
struct LineExchange: Sendable {
    /// Without its end.
    let message: String

    /// Returns the first line that has a JSON object, from where that begins: iMCP sends its heart beats without an end of line.
    ///
    /// - Throws: What NIO throws, `CancellationError`, or `ProbeError`.
    func run(over carrier: consuming Connection) async throws -> [UInt8] {
        guard carrier.early.isEmpty else { throw ProbeError.speaksFirst }
        let (descriptor, _, _, lease) = carrier.release()
        // The lease goes when this returns, after the channel has closed the descriptor.
        defer { withExtendedLifetime(lease) {} }
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
                guard bytes.count <= ProbeHTTPRequest.limit else { throw ProbeError.tooMuch }
                guard bytes.contains(UInt8(ascii: "\n")) else { continue }
                for line in bytes.split(separator: UInt8(ascii: "\n")) {
                    if let start = line.firstIndex(of: UInt8(ascii: "{")) { return Array(line[start...]) }
                }
            }
            throw ProbeError.endedEarly
        }
    }
}
