import NIOCore
import NIOHTTP2
import NIOPosix
import NIOSSL
import SystemIO

/// An HTTP/2 connection over TLS to a server of etcd. Carries many calls at once.
///
/// The calls are gRPC. HTTP/2 is used directly, because the status of a call is in the trailers of its response.
struct EtcdConnection: Sendable {
    let endpoint: EtcdEndpoint
    let channel: any Channel
    private let streams: NIOHTTP2Handler.StreamMultiplexer

    /// The receive window of the connection and of each stream in bytes. A list of 10,000 keys has 6 MB.
    private static let window = 8 << 20
    /// The time in milliseconds after which unacknowledged data ends the connection (TCP_USER_TIMEOUT in tcp(7)).
    private static let userTimeout = 5000

    /// Opens a connection. `onUnusable` is called once, when the connection accepts no further calls.
    ///
    /// - Returns: The connection, when the server has accepted the client's certificate. Fails with an `EtcdError`.
    static func open(
        to endpoint: EtcdEndpoint,
        context: NIOSSLContext,
        limit: TimeAmount,
        onUnusable: @escaping @Sendable () -> Void
    ) -> EventLoopFuture<EtcdConnection> {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let ready = loop.makePromise(of: EtcdConnection.self)
        let timeout = loop.scheduleTask(in: limit) {
            ready.fail(EtcdError.notConnected(reason: "\(endpoint) did not answer within \(limit)"))
        }
        let channel = ClientBootstrap(group: loop)
            .connectTimeout(limit)
            .channelOption(.tcpOption(.init(rawValue: tcpUserTimeout)), value: userTimeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: serverName(endpoint)))
                    let streams = try pipeline.addHTTP2(window: window)
                    let connection = EtcdConnection(endpoint: endpoint, channel: channel, streams: streams)
                    try pipeline.addHandler(EtcdConnectionHandler(connection, ready: ready, onUnusable: onUnusable))
                }
            }
            .connect(host: endpoint.host, port: Int(endpoint.port))
        channel.whenFailure { ready.fail(EtcdError.notConnected(reason: "\(endpoint): \(Self.reason(of: $0))")) }
        ready.futureResult.whenComplete { _ in timeout.cancel() }
        ready.futureResult.whenFailure { _ in channel.whenSuccess { $0.close(promise: nil) } }
        return ready.futureResult
    }

    /// The name for the verification of the server's certificate; nil for an IP address, which NIOSSL verifies itself.
    private static func serverName(_ endpoint: EtcdEndpoint) -> String? {
        let address = try? NIOCore.SocketAddress(ipAddress: endpoint.host, port: 0)
        return address == nil ? endpoint.host : nil
    }

    /// Returns the reason of a failed connect in the words of the system.
    private static func reason(of error: any Error) -> String {
        guard let error = error as? NIOConnectionError else { return "\(error)" }
        guard let cause = error.connectionErrors.last?.error else { return "the name is unknown" }
        return (cause as? IOError).map { SocketError.message(forConnect: $0.errnoCode) } ?? "\(cause)"
    }

    /// Opens a stream for a gRPC call. `makeHandler` makes the handler of its messages.
    ///
    /// - Returns: The channel of the stream. Fails with an `EtcdError`.
    func openStream(
        _ path: String,
        _ makeHandler: @escaping @Sendable () -> any ChannelHandler
    ) -> EventLoopFuture<any Channel> {
        let stream = streams.createStreamChannel { [endpoint] stream in
            stream.eventLoop.makeCompletedFuture {
                let pipeline = stream.pipeline.syncOperations
                try pipeline.addHandler(GRPCStreamHandler(path: path, authority: endpoint.authority))
                try pipeline.addHandler(makeHandler())
            }
        }
        return stream.flatMapErrorThrowing { [endpoint] error in
            throw EtcdError.notConnected(reason: "\(endpoint) accepts no call: \(error)")
        }
    }

    /// Makes a call with one request and one response.
    ///
    /// - Returns: The bytes of the response.
    /// - Throws: `EtcdError`, `CancellationError`.
    func call(_ path: String, _ request: [UInt8], limit: TimeAmount) async throws -> ByteBuffer {
        let promise = channel.eventLoop.makePromise(of: ByteBuffer.self)
        let timeout = channel.eventLoop.scheduleTask(in: limit) { [endpoint] in
            promise.fail(EtcdError.interrupted(reason: "\(endpoint) did not answer within \(limit)"))
        }
        let stream = openStream(path) { GRPCUnaryHandler(request: request, promise: promise) }
        stream.whenFailure { promise.fail($0) }
        promise.futureResult.whenComplete { _ in
            timeout.cancel()
            stream.whenSuccess { $0.close(promise: nil) }
        }
        return try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: {
            promise.fail(CancellationError())
        }
    }

    /// Asks the server for its clock.
    ///
    /// - Returns: The header `date` of a response; nil if the server sends none within the limit, as one that serves gRPC only.
    func date(limit: TimeAmount) async -> String? {
        let promise = channel.eventLoop.makePromise(of: String?.self)
        let timeout = channel.eventLoop.scheduleTask(in: limit) { promise.succeed(nil) }
        let stream = streams.createStreamChannel { [endpoint] stream in
            stream.eventLoop.makeCompletedFuture {
                let handler = EtcdDateHandler(authority: endpoint.authority, promise: promise)
                try stream.pipeline.syncOperations.addHandler(handler)
            }
        }
        stream.whenFailure { _ in promise.succeed(nil) }
        promise.futureResult.whenComplete { _ in
            timeout.cancel()
            stream.whenSuccess { $0.close(promise: nil) }
        }
        return try? await promise.futureResult.get()
    }
}

extension ChannelPipeline.SynchronousOperations {
    /// Adds HTTP/2 for a client that accepts no pushed streams.
    fileprivate func addHTTP2(window: Int) throws -> NIOHTTP2Handler.StreamMultiplexer {
        var connection = NIOHTTP2Handler.ConnectionConfiguration()
        connection.initialSettings =
            nioDefaultSettings + [
                HTTP2Setting(parameter: .enablePush, value: 0),
                HTTP2Setting(parameter: .initialWindowSize, value: window),
            ]
        connection.targetWindowSize = window
        // etcd with `--listen-client-http-urls` is a server of grpc-go, which sends a PING for almost every DATA frame.
        // The default limit of 200 in 30 s would end the connection. The limiter reserves memory for its maximum.
        connection.controlFrameRateLimit.maximumCount = 10_000
        connection.controlFrameRateLimit.windowLength = .seconds(1)
        var stream = NIOHTTP2Handler.StreamConfiguration()
        stream.targetWindowSize = window
        return try configureHTTP2Pipeline(
            mode: .client,
            connectionConfiguration: connection,
            streamConfiguration: stream
        ) { pushed in pushed.close() }
    }
}
