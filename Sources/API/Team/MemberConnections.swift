package import Model
import NIOCore
import StreamBridge
import Synchronization

/// Tells which hosts belong to the team now.
package protocol MemberDirectory: Sendable {
    /// Returns whether a host with this key is a member.
    func accepts(_ host: HostName, key: KeyPin) -> Bool
}

/// The connections of other hosts' brokers to the team listener. The removal of a host closes its connections.
package final class MemberConnections: Sendable {
    private struct Connection {
        let channel: any Channel
        let host: HostName
        let key: KeyPin
    }

    private let connections = Mutex<[ObjectIdentifier: Connection]>([:])

    package init() {}

    /// The number of connections.
    package var count: Int { connections.withLock(\.count) }

    /// Adds a connection until it closes.
    func add(_ channel: any Channel, of host: HostName, key: KeyPin) {
        let id = ObjectIdentifier(channel)
        connections.withLock { $0[id] = Connection(channel: channel, host: host, key: key) }
        channel.closeFuture.whenComplete { [self] _ in _ = connections.withLock { $0.removeValue(forKey: id) } }
    }

    /// Resets the connections of hosts that are no members any more. When it returns, none of them carries another byte.
    ///
    /// - Returns: The hosts.
    @discardableResult
    package func closeRefused(by members: any MemberDirectory) async -> Set<HostName> {
        let refused = connections.withLock { connections in
            connections.values.filter { !members.accepts($0.host, key: $0.key) }
        }
        for connection in refused { try? await connection.channel.reset().get() }
        return Set(refused.map(\.host))
    }
}
