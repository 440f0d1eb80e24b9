import Model
import NIOCore
import Synchronization
import SystemIO

/// Counts the connections of all listeners: in total, per user and per grant.
package final class ConnectionLimiter: Sendable {
    /// The clients of a listener, which decide how many connections the listener may accept.
    enum Share: Sendable {
        /// Owners and other users, on the Unix socket.
        case owners
        case loopback
        /// The sockets of all grants together.
        case grantSockets
        case remote
        /// The brokers of other hosts. Their connections do not count among those of the other listeners.
        case team
    }

    /// The maximum number of connections on all listeners together.
    static let maxConnections = 256
    /// The number of connections that are reserved for owners. An owner can always connect and stop the other clients.
    static let reservedForOwners = 8
    /// The maximum number of connections of remote clients with a grant, so that they leave places for local ones.
    static let maxRemote = 96
    /// The maximum number of connections on the sockets of all grants together, so that they leave places for others.
    static let maxOnGrantSockets = 128
    /// The maximum number of connections of other hosts' brokers. Each stream through the team listener is one.
    static let maxTeam = 512
    /// The maximum number of connections per host of the team.
    static let maxPerHost = 256
    /// The maximum number of connections per user, so that no user can block the others. Root and the broker's user
    /// have no limit; their idle connections are closed when another client needs the place (`OwnerConnections`).
    static let maxPerUser = 64
    /// The maximum number of connections per grant on all listeners together, so that no holder can block the others.
    static let maxPerGrant = 64
    /// The number of connections above which a TCP connection without a grant closes after its response.
    static let busyThreshold = 128

    private let total = Mutex(Total())
    private let arrivalSubscribers = Broadcast<Void>(slow: .keepsNewest(1))
    /// The number of connections per user or remote address.
    private let users = Mutex<[Peer: Int]>([:])
    private let grants = Mutex(Grants())

    /// The client of a connection before its first request.
    enum Peer: Hashable, Sendable {
        /// A user of this machine. All users that the kernel does not report share nil.
        case user(UInt32?)
        /// A remote address.
        case address(String)
        /// A client on the socket of this grant.
        case grant(String)
    }

    /// The grant of each connection, and the number of connections per grant.
    private struct Grants {
        var grantByConnection: [ObjectIdentifier: String] = [:]
        var countByGrant: [String: Int] = [:]

        mutating func release(_ connection: ObjectIdentifier) {
            guard let grant = grantByConnection.removeValue(forKey: connection), let count = countByGrant[grant] else {
                return
            }
            countByGrant[grant] = count > 1 ? count - 1 : nil
        }
    }

    /// The number of connections, and the time when the last one closed.
    private struct Total {
        var count = 0
        var remoteCount = 0
        var grantSocketCount = 0
        var teamCount = 0
        var lastEnd: ContinuousClock.Instant?
        var ofOwners = OwnerConnections()

        mutating func add(_ change: Int, in share: Share) {
            if share == .team { return teamCount += change }
            count += change
            if share == .remote { remoteCount += change }
            if share == .grantSockets { grantSocketCount += change }
        }

        func hasRecentClient(at now: ContinuousClock.Instant) -> Bool {
            count > 0 || lastEnd.map { now - $0 < .seconds(60) } ?? false
        }

        /// Returns whether the share is not used up.
        func hasOwnCapacity(in share: Share, unauthenticated: Int) -> Bool {
            switch share {
            case .owners, .loopback: true
            case .team: teamCount - unauthenticated < maxTeam
            case .grantSockets: grantSocketCount < maxOnGrantSockets
            case .remote: remoteCount - unauthenticated < maxRemote
            }
        }

        /// Returns whether all shares together have a place for this one.
        func hasCommonCapacity(for share: Share) -> Bool {
            share == .team || count < (share == .owners ? maxConnections : maxConnections - reservedForOwners)
        }
    }

    package init() {}

    /// Counts one more connection. Check and count are one step, because every listener has a thread of its own.
    ///
    /// If there is no place, an idle connection of an owner is closed. Its place is free a moment later.
    ///
    /// - Parameters:
    ///   - share: The clients of the listener.
    ///   - unauthenticated: The number of remote connections without a grant, which have a limit of their own.
    ///   - now: The current time.
    /// - Returns: False if the share is used up.
    func openConnection(in share: Share, unauthenticated: Int = 0, at now: ContinuousClock.Instant = .now) -> Bool {
        let (isOpen, isArrival, evicted) = total.withLock { total -> (Bool, Bool, (any Channel)?) in
            guard total.hasOwnCapacity(in: share, unauthenticated: unauthenticated) else { return (false, false, nil) }
            let evicted = total.hasCommonCapacity(for: share) ? nil : total.ofOwners.evictIdle(at: now)
            guard evicted != nil || total.hasCommonCapacity(for: share) else { return (false, false, nil) }
            defer { total.add(1, in: share) }
            return (true, share != .team && !total.hasRecentClient(at: now), evicted)
        }
        evicted?.close(promise: nil)
        if isArrival { arrivalSubscribers.send(()) }
        return isOpen
    }

    func connectionClosed(in share: Share, at now: ContinuousClock.Instant = .now) {
        total.withLock { total in
            total.add(-1, in: share)
            if share != .team { total.lastEnd = now }
        }
    }

    /// The number of open connections of remote clients.
    package var remoteConnections: Int { total.withLock { $0.remoteCount } }

    /// Returns whether a client is connected now or was connected within the last 60 seconds.
    package func hasRecentClient(at now: ContinuousClock.Instant = .now) -> Bool {
        total.withLock { $0.hasRecentClient(at: now) }
    }

    /// Subscribes to the arrival of a client while there was no recent one.
    package func arrivals() -> AsyncStream<Void> { arrivalSubscribers.subscribe() }

    /// Counts one more connection of a user or a remote address. Returns false at the limit.
    func acquire(_ peer: Peer) -> Bool {
        users.withLock { users in
            guard users[peer, default: 0] < Self.maxPerUser else { return false }
            users[peer, default: 0] += 1
            return true
        }
    }

    func release(_ peer: Peer) {
        users.withLock { users in
            users[peer, default: 1] -= 1
            if users[peer] == 0 { users[peer] = nil }
        }
    }

    /// Counts a connection for a grant, until the connection closes or shows another grant.
    ///
    /// - Returns: False if the grant is at the limit.
    func acquire(_ channel: any Channel, grant: String, limit: Int = maxPerGrant) -> Bool {
        let connection = ObjectIdentifier(channel)
        let (isAcquired, isNew) = grants.withLock { grants -> (Bool, Bool) in
            let old = grants.grantByConnection[connection]
            if old == grant { return (true, false) }
            guard grants.countByGrant[grant, default: 0] < limit else { return (false, false) }
            grants.release(connection)
            grants.grantByConnection[connection] = grant
            grants.countByGrant[grant, default: 0] += 1
            return (true, old == nil)
        }
        if isNew { channel.closeFuture.whenComplete { [self] _ in grants.withLock { $0.release(connection) } } }
        return isAcquired
    }

    /// True if a TCP connection without a grant must close after its response.
    var isBusy: Bool { total.withLock { $0.count >= Self.busyThreshold } }

    /// Returns whether one more connection may be accepted; see `openConnection(in:unauthenticated:)`.
    func hasCapacity(
        in share: Share,
        unauthenticated: Int = 0,
        at now: ContinuousClock.Instant = .now
    ) -> Bool {
        total.withLock { total in
            total.hasOwnCapacity(in: share, unauthenticated: unauthenticated)
                && (total.hasCommonCapacity(for: share) || total.ofOwners.hasIdle(at: now))
        }
    }

    /// Adds the connection of root or of the broker's user, until it closes.
    func addOwner(_ channel: any Channel, at now: ContinuousClock.Instant = .now) {
        total.withLock { $0.ofOwners.add(channel, at: now) }
        channel.closeFuture.whenComplete { [self] _ in total.withLock { $0.ofOwners.remove(channel) } }
    }

    func requestBegan(on channel: any Channel) { total.withLock { $0.ofOwners.requestBegan(on: channel) } }

    func requestEnded(on channel: any Channel, at now: ContinuousClock.Instant = .now) {
        total.withLock { $0.ofOwners.requestEnded(on: channel, at: now) }
    }

    /// Counts the request in progress as one without an end of its own, such as an event stream.
    ///
    /// - Returns: False if the owners have too many of them.
    func beginStream(on channel: any Channel) -> Bool { total.withLock { $0.ofOwners.beginStream(on: channel) } }

    /// True if clients occupy connections of the owners' reserve. Clients that are not owners are then rejected.
    var isReservedCapacityInUse: Bool { total.withLock { $0.count > Self.maxConnections - Self.reservedForOwners } }
}

extension SocketOwnerLookup {
    /// Returns the user of the process at the other end of a loopback connection; nil if the kernel does not report a
    /// user.
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
