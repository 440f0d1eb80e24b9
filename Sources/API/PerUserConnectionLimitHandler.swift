import Model
import NIOCore
import SystemIO

/// Looks whose a new connection is, and sends a user away who has too many already.
///
/// Before a byte of it is read: whoever says nothing at all takes a place, too.
final class PerUserConnectionLimitHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let crowd: ConnectionLimiter
    private let owners: OwnerPolicy
    private let sockets: SocketOwnerLookup

    init(crowd: ConnectionLimiter, owners: OwnerPolicy, sockets: SocketOwnerLookup) {
        self.crowd = crowd
        self.owners = owners
        self.sockets = sockets
    }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        guard let credentials = PeerCredentials.credentials(of: context.channel) else {
            return admit(sockets.user(of: context.channel), context)
        }
        credentials.assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let credentials) where credentials.user != .max: admit(credentials.user, context)
            default: admit(sockets.user(of: context.channel), context)
            }
        }
    }

    private func admit(_ user: UInt32?, _ context: ChannelHandlerContext) {
        // Owners are few, run many programs, and could do worse than to fill a door.
        if user == 0 || user == owners.user { return }
        guard crowd.admit(user) else { return refuse(context) }
        context.channel.closeFuture.whenComplete { [crowd] _ in crowd.dismiss(user) }
    }

    private func refuse(_ context: ChannelHandlerContext) {
        let problem = Problem(
            .limit,
            "this user has \(ConnectionLimiter.limitPerUser) connections open already",
            next: "close some, or keep one open for many requests"
        )
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: problem.lastWords)), promise: nil)
        context.close(promise: nil)
    }
}

extension SocketOwnerLookup {
    /// Whose process is at the other end of a connection over loopback; nil where the kernel does not say.
    func user(of channel: any Channel) -> UInt32? {
        guard let remote = Self.address(channel.remoteAddress), let local = Self.address(channel.localAddress),
            case .user(let id)? = try? owner(of: remote, connectedTo: local)
        else { return nil }
        return id
    }

    private static func address(_ address: NIOCore.SocketAddress?) -> SystemIO.SocketAddress? {
        guard let address, let ip = address.ipAddress, let port = address.port.flatMap(UInt16.init(exactly:)) else {
            return nil
        }
        return SystemIO.SocketAddress(numeric: ip, port: port)
    }
}
