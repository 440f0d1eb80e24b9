import NIOCore
import NIOHTTP1

/// Behind the HTTP decoder: tells the watch before it how far a request is, and keeps what the next step would drop.
final class HeadNotice: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let watch: HeadWatch

    init(to watch: HeadWatch) { self.watch = watch }

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
