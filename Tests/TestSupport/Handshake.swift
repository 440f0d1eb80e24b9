package import NIOCore
import NIOPosix

/// One connection over loopback with TLS on both sides.
package enum Handshake {
    package typealias Setup = @Sendable (any Channel) throws -> Void

    /// Connects, sends a line, and returns the answer of the server.
    ///
    /// A TLS 1.3 client completes its handshake before the server has checked the client's certificate. Only the answer
    /// proves that both sides accepted.
    /// - Parameters:
    ///   - server: Adds TLS to the server's channel.
    ///   - client: Adds TLS to the client's channel.
    ///   - answer: Returns the answer. Called on the event loop of the server's channel.
    /// - Returns: The answer.
    /// - Throws: An error of TLS, or `ClosedWithoutAnswer`.
    package static func answer(
        server: @escaping Setup,
        client: @escaping Setup,
        answer: @escaping @Sendable (any Channel) -> String = { _ in "accepted" }
    ) async throws -> String {
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AnswerHandler(answer))
                    try server(channel)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let result = group.any().makePromise(of: String.self)
        let channel = try await ClientBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AskHandler(result))
                    try client(channel)
                }
            }
            .connect(to: listener.localAddress.unwrapped).get()
        let text = await result.futureResult.result()
        try? await channel.close().get()
        try await listener.close().get()
        return try text.get()
    }

    package struct ClosedWithoutAnswer: Error {
        package init() {}
    }

    private final class AnswerHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let answer: @Sendable (any Channel) -> String

        init(_ answer: @escaping @Sendable (any Channel) -> String) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let buffer = ByteBuffer(string: answer(context.channel) + "\n")
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private final class AskHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let result: EventLoopPromise<String>
        private var received = ""

        init(_ result: EventLoopPromise<String>) { self.result = result }

        func channelActive(context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "?\n")), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received += String(buffer: unwrapInboundIn(data))
            if received.hasSuffix("\n") { result.succeed(String(received.dropLast())) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            result.fail(error)
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { result.fail(ClosedWithoutAnswer()) }
    }
}

extension EventLoopFuture where Value: Sendable {
    /// Returns the result without throwing.
    fileprivate func result() async -> Result<Value, any Error> {
        do { return .success(try await get()) } catch { return .failure(error) }
    }
}

extension Optional {
    /// The value.
    ///
    /// - Throws: `NoValue` if there is none.
    fileprivate var unwrapped: Wrapped {
        get throws {
            guard let self else { throw NoValue() }
            return self
        }
    }
}

private struct NoValue: Error {}
