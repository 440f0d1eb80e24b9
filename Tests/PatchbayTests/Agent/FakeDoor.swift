import Client
import FoundationEssentials
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// An agent's door on a unix socket that answers each request as the test says.
final class FakeDoor: Sendable {
    enum Answer: Sendable {
        /// Sends it and closes.
        case whole(String)
        /// Sends it and leaves the stream open.
        case open(String)
        /// Takes the request and closes without a word.
        case cut
        /// Takes the request and never says a word.
        case silence
    }

    let path: String
    private let answer: @Sendable (String) -> Answer
    private let heard = Mutex<[String]>([])
    private let closed = Mutex(0)
    private let server = Mutex<(any Channel)?>(nil)
    private let connections = Mutex<[any Channel]>([])

    /// Not open yet.
    init(_ answer: @escaping @Sendable (String) -> Answer) {
        path = "/tmp/patchbay-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
        self.answer = answer
    }

    /// The requests so far, whole and in order.
    var requests: [String] { heard.withLock { $0 } }
    /// How many connections a client has closed before it had a whole answer.
    var abandoned: Int { closed.withLock { $0 } }

    func open() async throws {
        // On one loop requests are heard in the order in which they were sent; on two, whichever loop is first.
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton.next())
            .childChannelInitializer { [self] channel in
                connections.withLock { $0.append(channel) }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Actor(self))
                }
            }
            .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        server.withLock { $0 = channel }
    }

    /// As a process that ends: nobody listens, and every stream breaks.
    func shut() async throws {
        let channel = server.withLock { server in
            defer { server = nil }
            return server
        }
        try await channel?.close()
        for connection in connections.withLock({ $0 }) { try? await connection.close() }
        unlink(path)
    }

    static func json(_ body: String, status: String = "200 OK", headers: String = "") -> Answer {
        .whole(
            "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n"
                + body
        )
    }

    static func events(_ messages: [String]) -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
            + messages.map { "event: message\ndata: \($0)\n\n" }.joined()
    }

    private final class Actor: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let door: FakeDoor
        var request = ""
        var isAnswered = false

        init(_ door: FakeDoor) { self.door = door }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            request += String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
            guard let end = request.firstRange(of: "\r\n\r\n") else { return }
            let head = request[..<end.lowerBound].lowercased()
            let length = head.firstRange(of: "content-length: ").flatMap { field in
                Int(head[field.upperBound...].prefix { $0.isNumber })
            }
            guard request[end.upperBound...].utf8.count >= length ?? 0 else { return }
            door.heard.withLock { $0.append(request) }
            let channel = context.channel
            switch door.answer(request) {
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
            if !isAnswered { door.closed.withLock { $0 += 1 } }
            context.fireChannelInactive()
        }
    }
}
