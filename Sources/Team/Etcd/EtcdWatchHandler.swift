import NIOCore
import SwiftProtobuf

/// Runs a watch on its stream until one side ends it.
final class EtcdWatchHandler: ChannelDuplexHandler {
    typealias InboundIn = GRPCResponseReader.Part
    typealias OutboundIn = Never
    typealias OutboundOut = GRPCRequestPart

    private var watch: EtcdWatch
    private let interval: TimeAmount
    private let onChanges: @Sendable (TeamStoreChanges) -> Void
    /// Called once. Nil afterwards.
    private var onEnd: (@Sendable (TeamStoreError) -> Void)?
    /// The timer of the next progress request.
    private var progress: Scheduled<Void>?

    init(
        _ watch: EtcdWatch,
        interval: Duration,
        onChanges: @escaping @Sendable (TeamStoreChanges) -> Void,
        onEnd: @escaping @Sendable (TeamStoreError) -> Void
    ) {
        self.watch = watch
        self.interval = TimeAmount(interval)
        self.onChanges = onChanges
        self.onEnd = onEnd
    }

    func channelActive(context: ChannelHandlerContext) {
        send(watch.creation, context)
        scheduleProgress(context)
        context.fireChannelActive()
    }

    private func scheduleProgress(_ context: ChannelHandlerContext) {
        // NIO calls a handler on the event loop of its channel, so the loop is the current one.
        progress = context.eventLoop.assumeIsolated().scheduleTask(in: interval) { [self] in
            do throws(TeamStoreError) {
                send(try watch.progressRequest(), context)
                scheduleProgress(context)
            } catch {
                end(error, context)
            }
        }
    }

    private func send(_ request: EtcdWatchRequest, _ context: ChannelHandlerContext) {
        do {
            let part = GRPCRequestPart(message: try request.serializedBytes(), isLast: false)
            context.writeAndFlush(wrapOutboundOut(part), promise: nil)
        } catch {
            end(.failed(reason: "\(error)"), context)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .message(let message):
            do {
                let response = try EtcdWatchResponse(serializedBytes: Array(message.readableBytesView))
                for changes in try watch.receive(response) { onChanges(changes) }
            } catch {
                end(error as? TeamStoreError ?? .failed(reason: "\(error)"), context)
            }
        case .end(let status):
            let ended = TeamStoreError.unreachable(reason: "the server ended the watch")
            end(status.code == .ok ? ended : status.asTeamStoreError, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end((error as? EtcdError)?.asTeamStoreError ?? .unreachable(reason: "\(error)"), context)
    }

    /// The reader of the changes has ended the watch.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        onEnd = nil
        context.close(mode: mode, promise: promise)
    }

    func handlerRemoved(context: ChannelHandlerContext) { progress?.cancel() }

    private func end(_ error: TeamStoreError, _ context: ChannelHandlerContext) {
        progress?.cancel()
        let onEnd = onEnd
        self.onEnd = nil
        onEnd?(error)
        context.close(promise: nil)
    }
}
