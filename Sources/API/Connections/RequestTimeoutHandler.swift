import FoundationEssentials
import HTTPTypes
import Model
import NIOCore
import NIOHTTP1
import NIOTLS

/// Closes connections that send a request too slowly. Otherwise a thousand slow connections could block the server.
///
/// This handler runs before the HTTP decoder. `RequestProgressHandler` behind the decoder reports the end of each head
/// and of each request.
final class RequestTimeoutHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The time limit for a request head, from its first byte. For the first head, the time starts when the connection
    /// opens, or at the end of the TLS handshake.
    static let headTimeout = TimeAmount.seconds(5)
    /// The time limit for the body of a request: up to 64 KiB, and up to 4 MiB for MCP.
    static let bodyTimeout = TimeAmount.seconds(30)
    /// The maximum number of bytes behind the last request of a connection, before its response.
    static let maxUnparsedSize = 1 << 20

    private enum State {
        /// Between two requests.
        case idle
        case head
        case body
        /// Behind the last request of the connection.
        case ended
    }

    private let maxHeadSize: Int
    /// True behind TLS: the handshake has a time limit of its own.
    private let awaitsHandshake: Bool
    private var state = State.idle
    private var received = 0
    private var deadline: Scheduled<Void>?

    init(maxHeadSize: Int, awaitsHandshake: Bool) {
        self.maxHeadSize = maxHeadSize
        self.awaitsHandshake = awaitsHandshake
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let timeout = awaitsHandshake ? UnauthenticatedConnectionLimiter.handshakeTimeout : Self.headTimeout
        begin(.head, within: timeout, context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if awaitsHandshake, case .handshakeCompleted? = event as? TLSUserEvent {
            begin(.head, within: Self.headTimeout, context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if state == .idle { begin(.head, within: Self.headTimeout, context) }
        received += unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
        // The head is not complete yet. The decoder limits the fields but not the request line.
        if state == .head, received > maxHeadSize {
            reject(Problem(.headTooLarge, "the request head has more than \(maxHeadSize) bytes"), context)
        }
        if state == .ended, received > Self.maxUnparsedSize {
            let limit = "\(Self.maxUnparsedSize) bytes"
            reject(Problem(.badRequest, "more than \(limit) arrived behind the last request"), context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    /// The bytes that the decoder has not parsed: those behind a request that changes the protocol.
    var unparsed: ByteBuffer?

    /// Handles the end of a request head.
    func headEnded(_ context: ChannelHandlerContext) { begin(.body, within: Self.bodyTimeout, context) }

    /// Handles the end of a request. Behind the last request of a connection, no bytes are a request.
    func requestEnded(isLast: Bool) {
        state = isLast ? .ended : .idle
        deadline?.cancel()
        deadline = nil
    }

    private func begin(_ state: State, within timeout: TimeAmount, _ context: ChannelHandlerContext) {
        self.state = state
        received = 0
        deadline?.cancel()
        // NIO calls a handler on the event loop of its channel, so the loop is the current one.
        let loop = context.eventLoop.assumeIsolated()
        deadline = loop.scheduleTask(in: timeout) { [self] in
            // A silent connection gets no response. After a complete head, a response may already have been sent.
            guard state == .head, received > 0 else { return context.close(promise: nil) }
            reject(
                Problem(.timeout, "the request head did not arrive within \(timeout.nanoseconds / 1_000_000_000) s"),
                context
            )
        }
    }

    private func reject(_ problem: Problem, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: problem.rawHTTPResponse)), promise: nil)
        context.close(promise: nil)
    }
}

/// Tracks requests and responses behind the HTTP decoder.
///
/// Reports the end of heads and requests to `RequestTimeoutHandler`, and flushed responses to `ResponseTracker`. Sends 100
/// (Continue) when a handler begins to read the body.
/// Preserves the host of an absolute request target, which the next handler drops. Drops the requests behind the last one
/// of a connection, and closes the connection after the response to that one (RFC 9112, section 9.6).
final class RequestProgressHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The time in which a client can read the last response. A connection that closes with unread input is reset, and
    /// its last response may be lost (RFC 9112, section 9.6).
    static let lingerTime = TimeAmount.seconds(1)

    private let timeoutHandler: RequestTimeoutHandler
    private let tracker: ResponseTracker
    private let limiter: ConnectionLimiter
    /// The number of requests without a complete response.
    private var openRequests = 0
    /// True if the newest request is the last one of the connection.
    private var hasLastRequest = false
    /// True when the last request of the connection is complete.
    private var isPastLastRequest = false
    /// True while the client of the newest request sends no body before it gets 100 (Continue).
    private var awaitsContinue = false

    init(notifying timeoutHandler: RequestTimeoutHandler, tracker: ResponseTracker, limiter: ConnectionLimiter) {
        self.timeoutHandler = timeoutHandler
        self.tracker = tracker
        self.limiter = limiter
    }

    /// The body of the newest request will be read, so a client that waits for 100 (Continue) may send it.
    struct ContinueEvent: Sendable {}

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is ContinueEvent else { return context.triggerUserOutboundEvent(event, promise: promise) }
        promise?.succeed()
        // The event of an earlier request is not for the newest one, which waits until its own body is read.
        guard awaitsContinue, openRequests == 1 else { return }
        awaitsContinue = false
        let head = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        // Without 100 (Continue), the client may send the body or leave it out, so the next bytes are ambiguous.
        if awaitsContinue, openRequests == 1 { hasLastRequest = true }
        let isLast = hasLastRequest && openRequests == 1
        switch unwrapOutboundIn(data) {
        case .head(var head) where isLast:
            head.headers.add(name: "Connection", value: "close")
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            openRequests -= 1
            limiter.requestEnded(on: context.channel)
            let promise = promise ?? context.eventLoop.makePromise()
            promise.futureResult.whenSuccess { [tracker] in tracker.responseFlushed() }
            // The promise is of the event loop that calls this handler.
            if isLast { promise.futureResult.assumeIsolated().whenSuccess { Self.close(context) } }
            context.write(data, promise: promise)
        default: context.write(data, promise: promise)
        }
    }

    /// Ends the output, so that the client reads the response to its end. Then closes the connection.
    private static func close(_ context: ChannelHandlerContext) {
        context.close(mode: .output, promise: nil)
        context.eventLoop.scheduleTask(in: lingerTime) { [channel = context.channel] in channel.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isPastLastRequest else { return }
        switch unwrapInboundIn(data) {
        case .head(var head):
            timeoutHandler.headEnded(context)
            openRequests += 1
            limiter.requestBegan(on: context.channel)
            // The protocol may change behind an upgrade. NIO's decoder then parses nothing more.
            let mayChangeProtocol = head.headers.contains(name: "Upgrade") || head.method == .CONNECT
            hasLastRequest = !head.isKeepAlive || mayChangeProtocol || !Self.hasClearEnd(head.headers)
            // RFC 9110, section 7.8: a server ignores the field in a request of HTTP/1.0.
            if head.version != .http1_1 { head.headers.remove(name: "Upgrade") }
            // RFC 9110, section 10.1.1: and this one, too.
            let expectations = head.version == .http1_1 ? head.headers["Expect"] : []
            awaitsContinue = expectations.contains { $0.lowercased() == "100-continue" }
            // A target in absolute form also names a host (RFC 9112, section 3.2.2). The next handler keeps only its
            // path.
            // A host that differs from the Host header becomes a second Host header, which is rejected.
            if let name = Self.host(in: head.uri), head.headers["Host"] != [name] {
                head.headers.add(name: "Host", value: name)
            }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .end:
            awaitsContinue = false
            isPastLastRequest = hasLastRequest
            timeoutHandler.requestEnded(isLast: hasLastRequest)
            context.fireChannelRead(data)
        case .body:
            awaitsContinue = false
            context.fireChannelRead(data)
        }
    }

    /// Returns whether the end of the body is clear. Behind another transfer coding, implementations disagree about
    /// which bytes are the next request (RFC 9112, section 6.3). Then the request is refused, and the connection
    /// closes.
    static func hasClearEnd(_ headers: HTTPHeaders) -> Bool {
        let codings = headers["Transfer-Encoding"]
        return codings.isEmpty || codings == ["chunked"]
    }

    /// Returns the authority of a target in absolute form; nil for a plain path.
    static func host(in target: String) -> String? {
        guard !target.hasPrefix("/"), target != "*" else { return nil }
        guard let scheme = target.firstRange(of: "://") else { return target }
        return String(target[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" })
    }
}

extension Channel {
    /// Lets a client that waits for permission send the body of a request (RFC 9110, section 10.1.1). After a refusal, the
    /// final response takes the place of the permission.
    func acceptBody(of request: HTTPRequest) {
        guard request.headerFields[.expect] != nil else { return }
        triggerUserOutboundEvent(RequestProgressHandler.ContinueEvent(), promise: nil)
    }
}

extension Problem {
    /// The complete HTTP response, for errors that occur before there is a request. The connection closes after the
    /// response.
    var rawHTTPResponse: String {
        let body = (try? JSONCoding.encoder().encode(self)) ?? Data()
        let fields = [
            "HTTP/1.1 \(status) \(HTTPResponse.Status(code: status).reasonPhrase)",
            "Content-Type: application/problem+json", "Content-Length: \(body.count)", "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff", "Connection: close",
        ]
        return fields.joined(separator: "\r\n") + "\r\n\r\n" + String(decoding: body, as: UTF8.self)
    }
}
