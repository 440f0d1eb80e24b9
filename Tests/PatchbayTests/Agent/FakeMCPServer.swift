import Client
import FoundationEssentials
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// An MCP server on a Unix socket with scripted responses.
final class FakeMCPServer: Sendable {
    enum Response: Sendable {
        /// Sends the response and closes the connection.
        case whole(String)
        /// Sends the response and keeps the stream open.
        case open(String)
        /// Reads the request and closes the connection.
        case cut
        /// Reads the request and never responds.
        case silence
    }

    let path: String
    private let answer: @Sendable (String) -> Response
    private let received = Mutex<[String]>([])
    private let closed = Mutex(0)
    private let listener = Mutex<(any Channel)?>(nil)
    private let connections = Mutex<[any Channel]>([])

    /// Creates a server that does not listen yet.
    init(_ answer: @escaping @Sendable (String) -> Response) {
        path = "/tmp/patchbay-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
        self.answer = answer
    }

    /// The received requests, complete and in order.
    var requests: [String] { received.withLock { $0 } }
    /// The number of connections that a client closed before the end of the response.
    var abandoned: Int { closed.withLock { $0 } }

    func open() async throws {
        // One event loop keeps the requests in the order in which they were sent.
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton.next())
            .childChannelInitializer { [self] channel in
                connections.withLock { $0.append(channel) }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(self))
                }
            }
            .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        listener.withLock { $0 = channel }
    }

    /// Stops listening and closes all connections, like a terminated process.
    func shut() async throws {
        let channel = listener.withLock { listener in
            defer { listener = nil }
            return listener
        }
        try await channel?.close()
        for connection in connections.withLock({ $0 }) { try? await connection.close() }
        unlink(path)
    }

    static func json(_ body: String, status: String = "200 OK", headers: String = "") -> Response {
        .whole(
            "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n"
                + body
        )
    }

    static func events(_ messages: [String]) -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
            + messages.map { "event: message\ndata: \($0)\n\n" }.joined()
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let server: FakeMCPServer
        var request = ""
        var isAnswered = false

        init(_ server: FakeMCPServer) { self.server = server }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            request += String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
            guard let end = request.firstRange(of: "\r\n\r\n") else { return }
            let head = request[..<end.lowerBound].lowercased()
            let length = head.firstRange(of: "content-length: ").flatMap { field in
                Int(head[field.upperBound...].prefix { $0.isNumber })
            }
            guard request[end.upperBound...].utf8.count >= length ?? 0 else { return }
            server.received.withLock { $0.append(request) }
            let channel = context.channel
            switch server.answer(request) {
            case .silence: break
            case .cut: channel.close(promise: nil)
            case .open(let text): context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
            case .whole(let text):
                isAnswered = true
                let written = context.eventLoop.makePromise(of: Void.self)
                written.futureResult.whenComplete { _ in channel.close(promise: nil) }
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: written)
            }
            request = ""
        }

        func channelInactive(context: ChannelHandlerContext) {
            if !isAnswered { server.closed.withLock { $0 += 1 } }
            context.fireChannelInactive()
        }
    }
}
