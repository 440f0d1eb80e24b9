import Glibc
import Model
import NIOCore
import SystemIO

/// Looks up the user of each connection on a Unix socket, and rejects a connection of a user who is at the limit.
///
/// The check runs before the first byte is read, because silent connections count, too.
struct UnixConnectionLimit: Sendable {
    let limiter: ConnectionLimiter
    let owners: OwnerPolicy

    /// Counts a connection, which has just been accepted and has no handler. Sends the reason to a rejected client.
    ///
    /// - Returns: False if the connection must be closed.
    func admits(_ channel: any Channel) -> Bool {
        let handle = channel._channelCore as? any NIOTransportAccessibleChannelCore<CInt>
        let peer = ConnectionLimiter.Peer.user(try? handle?.withUnsafeTransport(Self.user) ?? nil)
        guard !limiter.acquire(peer, of: channel, owners) else { return true }
        let response = Array(Problem.tooManyConnections(of: "user").rawHTTPResponse.utf8)
        try? handle?.withUnsafeTransport { socket in
            _ = send(socket, response, response.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
        }
        return false
    }

    /// Returns the user at the other end of a socket, as the kernel reports the user.
    private static func user(of socket: CInt) -> UInt32? {
        var credentials = PeerCredentials.Credentials(pid: 0, user: .max, group: 0)
        var size = socklen_t(MemoryLayout.size(ofValue: credentials))
        let result = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
        return result == 0 && credentials.user != .max ? credentials.user : nil
    }
}

/// Looks up the user or the remote address of a new connection over TCP, and rejects a client that is at the connection
/// limit.
///
/// The check runs before the first byte is read, because silent connections count, too.
final class PerUserConnectionLimitHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let limiter: ConnectionLimiter
    private let owners: OwnerPolicy
    private let sockets: SocketOwnerLookup
    private let isRemote: Bool
    private let grant: String?

    init(
        limiter: ConnectionLimiter,
        owners: OwnerPolicy,
        sockets: SocketOwnerLookup,
        isRemote: Bool,
        grant: String? = nil
    ) {
        self.grant = grant
        self.limiter = limiter
        self.isRemote = isRemote
        self.owners = owners
        self.sockets = sockets
    }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        let peer: ConnectionLimiter.Peer =
            if let grant { .grant(grant) } else if isRemote {
                .address(context.remoteAddress?.ipAddress ?? "?")
            } else {
                .user(sockets.user(of: context.channel))
            }
        guard !limiter.acquire(peer, of: context.channel, owners) else { return }
        let problem = Problem.tooManyConnections(of: grant != nil ? "socket" : isRemote ? "address" : "user")
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: problem.rawHTTPResponse)), promise: nil)
        context.close(promise: nil)
    }
}

extension ConnectionLimiter {
    /// Counts a connection of a client until the connection closes. Owners have no limit: they run many programs and have
    /// full access anyway.
    ///
    /// - Returns: False if the client is at the limit.
    fileprivate func acquire(_ peer: Peer, of channel: any Channel, _ owners: OwnerPolicy) -> Bool {
        if peer == .user(0) || peer == .user(owners.user) {
            addOwner(channel)
            return true
        }
        guard acquire(peer) else { return false }
        channel.closeFuture.whenComplete { [self] _ in release(peer) }
        return true
    }
}

extension Problem {
    fileprivate static func tooManyConnections(of client: String) -> Problem {
        Problem(
            .limit,
            "this \(client) has \(ConnectionLimiter.maxPerUser) connections open already",
            hint: "close some, or reuse one connection for many requests"
        )
    }
}
