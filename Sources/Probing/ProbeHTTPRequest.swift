import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOPosix
import SystemIO

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
