import Client
import FoundationEssentials
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// A broker on its own unix socket that answers each connection with prepared bytes.
///
/// Contains no HTTP implementation, so it can also send malformed responses.
struct ScriptedBroker {
    /// The behavior on one connection. The last element applies to all further connections.
    enum Answer: Sendable {
        /// Sends each piece separately, then closes.
        case pieces([String])
        /// Sends each piece separately, then ends its output. The connection stays open in the other direction.
        case ended([String])
        /// Sends the pieces and keeps the connection open.
        case open([String])
        /// Reads the request and never responds.
        case silence
    }

    let path: String
    private let received: Received

    /// The complete requests so far, in order.
    var requests: [String] { received.requests.withLock { $0 } }

    private final class Received: Sendable {
        let requests = Mutex<[String]>([])
        let connections = Mutex(0)
    }

    private init(path: String, received: Received) {
        self.path = path
        self.received = received
    }

    /// Runs the body with a broker that gives these answers.
    static func with(
        _ answers: Answer...,
        timeout: Duration = .seconds(20),
        body: (ScriptedBroker, PatchbayClient) async throws -> Void
    ) async throws {
        let path = "/tmp/patchbay-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
        let received = Received()
        let server = try await bootstrap(answers, received)
            .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        do {
            try await body(
                ScriptedBroker(path: path, received: received),
                PatchbayClient(address: .unix(path: path), timeout: timeout)
            )
        } catch {
            try await server.close()
            unlink(path)
            throw error
        }
        try await server.close()
        unlink(path)
    }

    /// Runs the body with a broker on 127.0.0.1 and passes the port.
    static func onLoopback(_ answers: Answer..., body: (ScriptedBroker, UInt16) async throws -> Void) async throws {
        let received = Received()
        let server = try await bootstrap(answers, received).bind(host: "127.0.0.1", port: 0).get()
        let port = UInt16(server.localAddress?.port ?? 0)
        do {
            try await body(ScriptedBroker(path: "127.0.0.1:\(port)", received: received), port)
        } catch {
            try await server.close()
            throw error
        }
        try await server.close()
    }

    private static func bootstrap(_ answers: [Answer], _ received: Received) -> ServerBootstrap {
        ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = received.connections.withLock { count in
                        defer { count += 1 }
                        return count
                    }
                    let answer = answers[min(number, answers.count - 1)]
                    try channel.pipeline.syncOperations.addHandler(AnswerHandler(answer: answer, received: received))
                }
            }
    }

    /// Returns a response with a JSON body.
    static func json(_ body: String, status: String = "200 OK", type: String = "application/json") -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    static let streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

    /// Waits for the whole request (its body is small), then gives its answer.
    private final class AnswerHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let answer: Answer
        let received: Received
        var request = ""
        var isDone = false

        init(answer: Answer, received: Received) {
            self.answer = answer
            self.received = received
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            request += String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
            guard !isDone, isWhole else { return }
            isDone = true
            received.requests.withLock { $0.append(request) }
            switch answer {
            case .silence: break
            case .open(let pieces): send(pieces[...], context)
            case .pieces(let pieces): send(pieces[...], context, thenClose: .all)
            case .ended(let pieces): send(pieces[...], context, thenClose: .output)
            }
        }

        private func send(_ pieces: ArraySlice<String>, _ context: ChannelHandlerContext, thenClose mode: CloseMode) {
            send(pieces, context)
            // Closes after an empty write, because a close would drop unsent bytes.
            let last = context.eventLoop.makePromise(of: Void.self)
            let channel = context.channel
            last.futureResult.whenComplete { _ in channel.close(mode: mode, promise: nil) }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: last)
        }

        private var isWhole: Bool {
            guard let end = request.firstRange(of: "\r\n\r\n") else { return false }
            let head = request[..<end.lowerBound].lowercased()
            guard let field = head.firstRange(of: "content-length: ") else { return true }
            let length = Int(head[field.upperBound...].prefix { $0.isNumber }) ?? 0
            return request[end.upperBound...].utf8.count >= length
        }

        private func send(_ pieces: ArraySlice<String>, _ context: ChannelHandlerContext) {
            for piece in pieces {
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: piece)), promise: nil)
            }
        }
    }
}
