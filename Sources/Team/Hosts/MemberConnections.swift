package import Model
package import NIOCore
import Synchronization
import Transport

/// Tells which hosts belong to the team now.
package protocol MemberDirectory: Sendable {
    /// Returns whether a host with this key is a member.
    func accepts(_ host: HostName, key: KeyPin) -> Bool
}

/// The connections between this broker and those of other hosts, in both directions. The removal of a host closes its
/// connections.
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

    /// Adds a connection from this broker, after TLS. Called on the channel's event loop.
    ///
    /// - Throws: An error of NIO if the channel is closed.
    package func addOutgoing(_ channel: any Channel, to host: HostName, key: KeyPin) throws {
        // Without the handler, a close passes TLS, which waits for the end of TLS of the other host.
        try channel.pipeline.syncOperations.addHandler(ResetHandler(), position: .first)
        add(channel, of: host, key: key)
    }

    /// Adds a connection until it closes. Its pipeline begins with a `ResetHandler`.
    package func add(_ channel: any Channel, of host: HostName, key: KeyPin) {
        let id = ObjectIdentifier(channel)
        connections.withLock { $0[id] = Connection(channel: channel, host: host, key: key) }
        channel.closeFuture.whenComplete { [self] _ in _ = connections.withLock { $0.removeValue(forKey: id) } }
    }

    /// Resets the connections of hosts that are no members any more. When it returns, none carries another byte.
    ///
    /// - Returns: The hosts.
    @discardableResult
    package func closeRefused(by members: any MemberDirectory) async -> Set<HostName> {
        let refused = connections.withLock { connections in
            connections.values.filter { !members.accepts($0.host, key: $0.key) }
        }
        // All end before the first wait.
        let ends = refused.map { $0.channel.reset() }
        for end in ends { try? await end.get() }
        return Set(refused.map(\.host))
    }
}
