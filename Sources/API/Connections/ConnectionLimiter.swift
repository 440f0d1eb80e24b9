import Model
import NIOCore
import Synchronization
import SystemIO

/// How many connections all doors have together, and each user of them.
package final class ConnectionLimiter: Sendable {
    /// All of them.
    static let limit = 256
    /// Of these, so many are kept for owners: whatever others do, an owner can come in and put an end to it.
    static let kept = 8
    /// One user may have so many, unless it is an owner's: nobody is to keep the others out.
    static let limitPerUser = 64
    /// One grant may have so many at both doors together: one holder's open streams are not to keep the others out.
    static let limitPerGrant = 64
    /// With so many, a connection on which nobody showed a grant is closed after its answer.
    static let crowded = 128

    private let presence = Mutex(Presence())
    /// Those whom the kernel does not name are one user together.
    private let users = Mutex<[UInt32?: Int]>([:])
    private let grants = Mutex(Grants())

    /// Which connection is a grant's, and how many each grant has.
    private struct Grants {
        var holders: [ObjectIdentifier: String] = [:]
        var counts: [String: Int] = [:]

        mutating func leave(_ connection: ObjectIdentifier) {
            guard let grant = holders.removeValue(forKey: connection), let count = counts[grant] else { return }
            counts[grant] = count > 1 ? count - 1 : nil
        }
    }

    /// How many connections there are, and when the last one ended.
    private struct Presence {
        var count = 0
        var lastEnd: ContinuousClock.Instant?
    }

    package init() {}

    func enter() { presence.withLock { $0.count += 1 } }

    func leave(at now: ContinuousClock.Instant = .now) {
        presence.withLock { presence in
            presence.count -= 1
            presence.lastEnd = now
        }
    }

    /// Whether a client is connected, or was within the last minute.
    package func isPresent(at now: ContinuousClock.Instant = .now) -> Bool {
        presence.withLock { $0.count > 0 || $0.lastEnd.map { now - $0 < .seconds(60) } ?? false }
    }

    /// Notes a connection of a user's; false when it has as many as it may have.
    func admit(_ user: UInt32?) -> Bool {
        users.withLock { users in
            guard users[user, default: 0] < Self.limitPerUser else { return false }
            users[user, default: 0] += 1
            return true
        }
    }

    func dismiss(_ user: UInt32?) {
        users.withLock { users in
            users[user, default: 1] -= 1
            if users[user] == 0 { users[user] = nil }
        }
    }

    /// Counts a connection as a grant's, until it closes or shows another grant.
    ///
    /// - Returns: False when the grant has as many as it may have.
    func admit(_ channel: any Channel, under grant: String) -> Bool {
        let connection = ObjectIdentifier(channel)
        let (isAdmitted, isNew) = grants.withLock { grants -> (Bool, Bool) in
            let old = grants.holders[connection]
            if old == grant { return (true, false) }
            guard grants.counts[grant, default: 0] < Self.limitPerGrant else { return (false, false) }
            grants.leave(connection)
            grants.holders[connection] = grant
            grants.counts[grant, default: 0] += 1
            return (true, old == nil)
        }
        if isNew { channel.closeFuture.whenComplete { [self] _ in grants.withLock { $0.leave(connection) } } }
        return isAdmitted
    }

    /// Whether there are so many that a connection without a grant gives its place up after an answer.
    var isCrowded: Bool { presence.withLock { $0.count >= Self.crowded } }

    /// Whether one more may be taken in: at a door for owners, or at one for everybody.
    func hasRoom(forOwners: Bool) -> Bool {
        presence.withLock { $0.count < (forOwners ? Self.limit : Self.limit - Self.kept) }
    }

    /// Whether somebody is in who should give way to owners.
    var isTight: Bool { presence.withLock { $0.count > Self.limit - Self.kept } }
}

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
