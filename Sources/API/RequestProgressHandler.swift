import NIOCore
import NIOHTTP1

/// Behind the HTTP decoder: tells the watch before it how far a request is, keeps what the next step would drop, and notes
/// which answers are out.
final class RequestProgressHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let watch: RequestTimeoutHandler
    private let deliveries: ResponseTracker

    init(to watch: RequestTimeoutHandler, _ deliveries: ResponseTracker) {
        self.watch = watch
        self.deliveries = deliveries
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        let promise = promise ?? context.eventLoop.makePromise()
        promise.futureResult.whenSuccess { [deliveries] in deliveries.end() }
        context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            watch.headEnded(context)
            // A target in absolute form names a host, too (RFC 9112, section 3.2.2). Only its path goes on from here, so that
            // a name that differs becomes a second Host, which is refused.
            if let name = Self.host(in: head.uri), head.headers["Host"] != [name] {
                head.headers.add(name: "Host", value: name)
            }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .end:
            watch.requestEnded()
            context.fireChannelRead(data)
        case .body:
            context.fireChannelRead(data)
        }
    }

    /// What stands between the scheme and the path; nil for a path alone.
    static func host(in target: String) -> String? {
        guard !target.hasPrefix("/"), target != "*" else { return nil }
        guard let scheme = target.firstRange(of: "://") else { return target }
        return String(target[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" })
    }
}
