import Model
import NIOCore
import NIOHTTP1
import Synchronization
import SystemIO
import Transport

/// The upgrade of one connection to a stream.
struct StreamUpgrade: Sendable {
    /// The answer of the broker.
    enum Result: Sendable {
        case stream(SocketBridge)
        /// The error, when its document is complete.
        case refused(EventLoopFuture<ClientError>)

        /// - Throws: `ClientError`.
        func bridge() async throws -> SocketBridge {
            switch self {
            case .stream(let bridge): return bridge
            case .refused(let error): throw try await error.get()
            }
        }
    }

    private let head: HTTPRequestHead
    private let request: OutgoingRequest
    private let socket: SocketBox

    /// - Parameters:
    ///   - request: The request for the stream.
    ///   - connection: The connection that sends the request.
    ///   - socket: The socket that carries the bytes of the stream.
    init(_ request: OutgoingRequest, over connection: HTTPConnection, to socket: consuming Descriptor) {
        self.request = request
        self.socket = SocketBox(socket)
        head = connection.head(of: request)
    }

    /// Adds the handlers that send the request when the channel is active. Called on the event loop.
    func addHandlers(to channel: any Channel) throws -> EventLoopFuture<Result> {
        try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
        let hold = InboundHoldHandler()
        try channel.pipeline.syncOperations.addHandler(hold)
        var head = head
        head.headers.remove(name: "Connection")
        let upgrader = Upgrader(hold: NIOLoopBound(hold, eventLoop: channel.eventLoop), socket: socket)
        let configuration = NIOTypedHTTPClientUpgradeConfiguration<Result>(
            upgradeRequestHead: head,
            upgraders: [upgrader]
        ) { [request] channel in
            let error = channel.eventLoop.makePromise(of: ClientError.self)
            return channel.eventLoop.makeCompletedFuture {
                do { try channel.pipeline.syncOperations.addHandler(ProblemHandler(of: request, error)) } catch let
                    failure
                {
                    error.fail(failure)
                    throw failure
                }
                return .refused(error.futureResult)
            }
        }
        var pipeline = NIOUpgradableHTTPClientPipelineConfiguration(upgradeConfiguration: configuration)
        // The broker may send the first bytes of the stream together with the response head.
        pipeline.leftOverBytesStrategy = .forwardBytes
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(configuration: pipeline)
    }

    /// Passes on what arrived during the upgrade, after the bytes that the HTTP decoder had already read.
    func releaseInput(of channel: any Channel) {
        channel.eventLoop.execute {
            try? channel.pipeline.syncOperations.handler(type: InboundHoldHandler.self).release()
        }
    }
}

private struct Upgrader: NIOTypedHTTPClientProtocolUpgrader {
    let hold: NIOLoopBound<InboundHoldHandler>
    let socket: SocketBox

    var supportedProtocol: String { TunnelTarget.streamProtocol }
    var requiredUpgradeHeaders: [String] { [] }

    func addCustom(upgradeRequestHeaders: inout HTTPHeaders) {}

    func shouldAllowUpgrade(upgradeResponse: HTTPResponseHead) -> Bool {
        hold.value.begin()
        return true
    }

    func upgrade(
        channel: any Channel,
        upgradeResponse: HTTPResponseHead
    ) -> EventLoopFuture<StreamUpgrade.Result> {
        do { try channel.pipeline.syncOperations.addHandler(ResetHandler(), position: .first) } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return channel.eventLoop.makeFutureWithTask { [socket] in
            guard let socket = socket.take() else { throw ChannelError.alreadyClosed }
            return .stream(try await SocketBridge(channel, to: socket))
        }
    }
}

/// A descriptor that an escaping closure takes.
private final class SocketBox: Sendable {
    private let socket: Mutex<Descriptor?>

    init(_ socket: consuming Descriptor) { self.socket = Mutex(socket) }

    func take() -> Descriptor? { socket.withLock { $0.take() } }
}

/// Collects the problem document of a broker that did not open the stream.
private final class ProblemHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    /// The maximum size of a problem document in bytes.
    private static let limit = 64 << 10

    private let request: OutgoingRequest
    private let error: EventLoopPromise<ClientError>
    private var status = HTTPResponseStatus.ok
    private var body: [UInt8] = []

    init(of request: OutgoingRequest, _ error: EventLoopPromise<ClientError>) {
        self.request = request
        self.error = error
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): status = head.status
        case .body(let bytes):
            body += bytes.readableBytesView
            if body.count > Self.limit { context.close(promise: nil) }
        case .end: error.succeed(HTTPConnection.refused(request, status: status, body: body))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { self.error.fail(error) }

    func channelInactive(context: ChannelHandlerContext) {
        error.fail(ClientError.connectionLost(what: request.name))
    }
}
