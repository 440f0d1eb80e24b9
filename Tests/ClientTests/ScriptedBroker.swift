import Client
import FoundationEssentials
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// A broker that answers each connection with bytes written beforehand, on a unix socket of its own.
///
/// It knows no HTTP: what a real server would never send can be sent as well.
struct ScriptedBroker {
    /// What happens to the first connection, to the second, and so on; the last goes for all that follow.
    enum Answer: Sendable {
        /// Sends each piece by itself, then closes.
        case pieces([String])
        /// Sends, and leaves the connection open.
        case open([String])
        /// Takes the request and never says a word.
        case silence
    }

    let path: String
    private let heard: Heard

    /// The requests so far, whole and in order.
    var requests: [String] { heard.requests.withLock { $0 } }

    private final class Heard: Sendable {
        let requests = Mutex<[String]>([])
        let connections = Mutex(0)
    }

    private init(path: String, heard: Heard) {
        self.path = path
        self.heard = heard
    }

    /// Runs the body against a broker with these answers.
    static func with(
        _ answers: Answer...,
        patience: Duration = .seconds(20),
        body: (ScriptedBroker, PatchbayClient) async throws -> Void
    ) async throws {
        let path = "/tmp/patchbay-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
        let heard = Heard()
        let server = try await bootstrap(answers, heard)
            .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        do {
            try await body(
                ScriptedBroker(path: path, heard: heard),
                PatchbayClient(socketPath: path, patience: patience)
            )
        } catch {
            try await server.close()
            unlink(path)
            throw error
        }
        try await server.close()
        unlink(path)
    }

    /// The same on 127.0.0.1; the body is told the port.
    static func onLoopback(_ answers: Answer..., body: (ScriptedBroker, UInt16) async throws -> Void) async throws {
        let heard = Heard()
        let server = try await bootstrap(answers, heard).bind(host: "127.0.0.1", port: 0).get()
        let port = UInt16(server.localAddress?.port ?? 0)
        do {
            try await body(ScriptedBroker(path: "127.0.0.1:\(port)", heard: heard), port)
        } catch {
            try await server.close()
            throw error
        }
        try await server.close()
    }

    private static func bootstrap(_ answers: [Answer], _ heard: Heard) -> ServerBootstrap {
        ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = heard.connections.withLock { count in
                        defer { count += 1 }
                        return count
                    }
                    let answer = answers[min(number, answers.count - 1)]
                    try channel.pipeline.syncOperations.addHandler(Actor(answer: answer, heard: heard))
                }
            }
    }

    /// The head of an answer with a JSON body.
    static func json(_ body: String, status: String = "200 OK", type: String = "application/json") -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    static let streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

    /// Waits for the whole request (its bodies are small), then plays its part.
    private final class Actor: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let answer: Answer
        let heard: Heard
        var request = ""
        var isDone = false

        init(answer: Answer, heard: Heard) {
            self.answer = answer
            self.heard = heard
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            request += String(decoding: unwrapInboundIn(data).readableBytesView, as: UTF8.self)
            guard !isDone, isWhole else { return }
            isDone = true
            heard.requests.withLock { $0.append(request) }
            switch answer {
            case .silence: break
            case .open(let pieces): send(pieces[...], context)
            case .pieces(let pieces):
                send(pieces[...], context)
                // A close would drop what the socket has not taken yet; an empty write stands behind it.
                let last = context.eventLoop.makePromise(of: Void.self)
                let channel = context.channel
                last.futureResult.whenComplete { _ in channel.close(promise: nil) }
                context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: last)
            }
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
