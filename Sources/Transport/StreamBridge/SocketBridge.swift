package import NIOCore
import NIOPosix
package import SystemIO

/// Connects a channel with a socket of this process, so that the bytes of the channel can be used through a descriptor.
///
/// A stream through the API ends in a channel, because TLS is a channel handler. The relay of the tunnels works with
/// descriptors. `loopbackSocketPair()` makes the socket that a bridge needs, and its other end.
package struct SocketBridge: Sendable {
    private let channel: any Channel
    private let handlers: NIOLoopBound<(network: GlueHandler, local: GlueHandler)>

    /// Buffered bytes at which a side is no longer read, and below which it is read again.
    private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 128 << 10, high: 512 << 10)

    /// The size of one read in bytes, which follows the amount of data. NIO's default of at most 64 KiB needs more calls.
    private static var recvAllocator: AdaptiveRecvByteBufferAllocator {
        AdaptiveRecvByteBufferAllocator(minimum: 1 << 10, initial: 16 << 10, maximum: 256 << 10)
    }

    /// The receive buffer of the socket in bytes, of which the kernel doubles the number. The kernel would let it grow to
    /// 32 MiB (net.ipv4.tcp_rmem), and `GlueHandler` takes all of it into memory at the end of input. The channel keeps the
    /// kernel's buffer, because a fixed one limits the throughput of a distant peer.
    private static let receiveBufferSize = 1 << 20

    /// The place of a bridge in the pipeline of a channel.
    package struct Attachment {
        let position: ChannelPipeline.SynchronousOperations.Position
        let received: ByteBuffer?

        /// - Parameters:
        ///   - position: The place of the new handler.
        ///   - received: Bytes of the peer that other handlers have received. The socket receives them first.
        package init(_ position: ChannelPipeline.SynchronousOperations.Position, received: ByteBuffer? = nil) {
            self.position = position
            self.received = received
        }
    }

    /// Connects a channel with a socket. No further bytes pass before `start()`.
    ///
    /// The pipeline of the channel must begin with a `ResetHandler`.
    /// - Parameters:
    ///   - channel: The channel. The handlers behind the new one receive no more bytes.
    ///   - socket: A connected, non-blocking stream socket.
    ///   - attachment: Returns the place of the new handler in the channel's pipeline. Called on the event loop.
    /// - Throws: An error of NIO if one of the two is closed already; errors of `attachment`. The socket is then closed.
    package init(
        _ channel: any Channel,
        to socket: consuming Descriptor,
        at attachment: @escaping @Sendable (any Channel) throws -> Attachment = { _ in Attachment(.last) }
    ) async throws {
        self.channel = channel
        let number = socket.release()
        handlers = try await channel.eventLoop.flatSubmit {
            let (network, local) = GlueHandler.pair()
            let bound = NIOLoopBound((network: network, local: local), eventLoop: channel.eventLoop)
            return ClientBootstrap(group: channel.eventLoop)
                .channelOption(.allowRemoteHalfClosure, value: true)
                .channelOption(.autoRead, value: false)
                .channelOption(.writeBufferWaterMark, value: Self.waterMark)
                .channelOption(.recvAllocator, value: Self.recvAllocator)
                .channelOption(.socketOption(.so_rcvbuf), value: Self.receiveBufferSize)
                .channelInitializer { local in
                    local.eventLoop.makeCompletedFuture {
                        try local.pipeline.syncOperations.addHandlers(ResetHandler(), bound.value.local)
                    }
                }
                .withConnectedSocket(number)
                .flatMapThrowing { local in
                    do {
                        try Self.connect(channel, bound.value.network, at: attachment)
                    } catch {
                        local.close(promise: nil)
                        throw error
                    }
                    return bound
                }
        }.get()
    }

    private static func connect(
        _ channel: any Channel,
        _ handler: GlueHandler,
        at attachment: (any Channel) throws -> Attachment
    ) throws {
        try channel.syncOptions?.setOption(.autoRead, value: false)
        try channel.syncOptions?.setOption(.writeBufferWaterMark, value: waterMark)
        try channel.syncOptions?.setOption(.recvAllocator, value: recvAllocator)
        try channel.pipeline.syncOperations.handler(type: ResetHandler.self).writesBeforeClose = true
        let attachment = try attachment(channel)
        try channel.pipeline.syncOperations.addHandler(handler, position: attachment.position)
        if let received = attachment.received { handler.receive(received) }
    }

    /// Passes bytes from now on.
    ///
    /// - Parameter first: Bytes that the peer of the channel receives first.
    package func start(sending first: ByteBuffer = ByteBuffer()) {
        channel.eventLoop.execute { [handlers] in
            if first.readableBytes > 0 { handlers.value.network.send(first) }
            handlers.value.network.start()
            handlers.value.local.start()
        }
    }
}
