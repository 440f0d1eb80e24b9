import FoundationEssentials
import HTTPTypes
import Model
import NIOCore
import NIOHTTP1

/// Closes connections that are slow to say what they want: a thousand of them would otherwise be a closed door.
///
/// Sits before the HTTP decoder; `RequestProgressHandler` behind it tells when a head was whole, and when a request was.
final class RequestTimeoutHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// From the first byte to the end of a head; the first head counts from when the connection stands.
    static let headPatience = TimeAmount.seconds(5)
    /// For the body behind it, which is 64 KiB at most.
    static let bodyPatience = TimeAmount.seconds(30)

    private enum State {
        /// Nothing is being said.
        case quiet
        case head
        case body
    }

    private let headLimit: Int
    private var state = State.quiet
    private var received = 0
    private var deadline: Scheduled<Void>?

    init(headLimit: Int) { self.headLimit = headLimit }

    func handlerAdded(context: ChannelHandlerContext) { begin(.head, within: Self.headPatience, context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if state == .quiet { begin(.head, within: Self.headPatience, context) }
        received += unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
        // Still no end of the head. The decoder has limits for fields, and none for the first line.
        if state == .head, received > headLimit {
            refuse(Problem(.headTooLarge, "the head has more than \(headLimit) bytes"), context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    /// The head is whole.
    func headEnded(_ context: ChannelHandlerContext) { begin(.body, within: Self.bodyPatience, context) }

    /// The request is whole.
    func requestEnded() {
        state = .quiet
        deadline?.cancel()
        deadline = nil
    }

    private func begin(_ state: State, within patience: TimeAmount, _ context: ChannelHandlerContext) {
        self.state = state
        received = 0
        deadline?.cancel()
        let loop = context.eventLoop.assumeIsolated()
        deadline = loop.scheduleTask(in: patience) { [self] in
            // Who has said nothing at all asks for no answer; and behind a whole head there may be one already.
            guard state == .head, received > 0 else { return context.close(promise: nil) }
            refuse(Problem(.timeout, "the head did not come within \(patience.nanoseconds / 1_000_000_000) s"), context)
        }
    }

    private func refuse(_ problem: Problem, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: problem.lastWords)), promise: nil)
        context.close(promise: nil)
    }
}

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

extension Problem {
    /// The whole answer as bytes, for where there is no request yet that it would be an answer to. The connection ends with it.
    var lastWords: String {
        let body = (try? JSONCoding.encoder().encode(self)) ?? Data()
        let fields = [
            "HTTP/1.1 \(status) \(HTTPResponse.Status(code: status).reasonPhrase)",
            "Content-Type: application/problem+json", "Content-Length: \(body.count)", "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff", "Connection: close",
        ]
        return fields.joined(separator: "\r\n") + "\r\n\r\n" + String(decoding: body, as: UTF8.self)
    }
}
