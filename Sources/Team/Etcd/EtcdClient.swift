import FoundationEssentials
package import Logging
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf
import Synchronization

/// Makes calls to the servers of a cluster of etcd.
///
/// All calls go to one server until it fails; then they go to the next one of the list. The connections close with
/// `close()` or with the last reference.
package final class EtcdClient: Sendable {
    private struct State {
        var connections: [EtcdEndpoint: (number: Int, connection: EventLoopFuture<EtcdConnection>)] = [:]
        /// The index of the server for the next call.
        var current = 0
        /// The number of connections so far.
        var count = 0
        var isClosed = false
        /// The certificates for the next connections.
        var context: NIOSSLContext
    }

    let configuration: EtcdConfiguration
    private let logger: Logger
    private let state: Mutex<State>

    package init(_ configuration: EtcdConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        state = Mutex(State(context: configuration.context))
    }

    /// Uses a renewed certificate for the connections from now on. Open ones stay.
    func use(_ context: NIOSSLContext) { state.withLock { $0.context = context } }

    deinit { close() }

    /// Closes the connections. Watches and calls fail, also later ones.
    package func close() {
        let connections = state.withLock { state in
            state.isClosed = true
            defer { state.connections = [:] }
            return state.connections.values.map(\.connection)
        }
        for connection in connections {
            // The last reference may end inside a handler of the connection, so the handlers run first.
            connection.whenSuccess { connection in
                connection.channel.eventLoop.execute { connection.channel.close(promise: nil) }
            }
        }
    }

    /// Makes a call, at several servers if needed.
    ///
    /// - Throws: `TeamStoreError`, also `.unreachable` for a cancelled task.
    func call<Request, Response>(
        _ method: EtcdMethod<Request, Response>,
        _ request: Request
    ) async throws(TeamStoreError) -> Response {
        let start = ContinuousClock.now
        var retry = EtcdRetry(
            limit: EtcdTiming.call,
            isRepeatable: method.isRepeatable,
            endpointCount: configuration.endpoints.count
        )
        var unreachable: [EtcdEndpoint: String] = [:]
        while true {
            let endpoint = currentEndpoint
            do {
                let bytes: [UInt8] = try request.serializedBytes()
                let response = try await connection(to: endpoint).get()
                    .call(method.path, bytes, limit: TimeAmount(EtcdTiming.attempt))
                return try Response(serializedBytes: Array(response.readableBytesView))
            } catch {
                guard !Task.isCancelled else { throw .unreachable(reason: "the call was cancelled") }
                let error = error as? EtcdError ?? .invalidResponse(reason: "\(error)")
                if error.isTransient { leave(endpoint, because: error.asTeamStoreError) }
                if case .unreachable(let reason) = error.asTeamStoreError { unreachable[endpoint] = reason }
                guard let pause = retry.pause(after: error, elapsed: .now - start), !isClosed else {
                    guard case .unreachable = error.asTeamStoreError else { throw error.asTeamStoreError }
                    // Each server may have a reason of its own, and a dead one hides no other.
                    throw .unreachable(
                        reason: configuration.endpoints.compactMap { unreachable[$0] }.joined(separator: "; ")
                    )
                }
                // A cancelled pause ends in the next attempt.
                // The system's clock: the pause is a fraction of the limit of one call, and tests use a real etcd.
                if pause > .zero { try? await Task.sleep(for: pause) }
            }
        }
    }

    /// Returns the seconds by which the clock of this host is ahead of the current server's; nil if it is correct or unknown.
    func clockSkew() async -> Int? {
        guard let connection = try? await connection(to: currentEndpoint).get() else { return nil }
        let sentAt = Date()
        guard let date = await connection.date(limit: TimeAmount(EtcdTiming.attempt)) else { return nil }
        return EtcdClock(sentAt: sentAt, receivedAt: Date()).skew(to: date)
    }

    /// The server for the next call.
    var currentEndpoint: EtcdEndpoint { state.withLock { configuration.endpoints[$0.current] } }

    /// Chooses the next server of the list, if this is the current one.
    func leave(_ endpoint: EtcdEndpoint, because error: TeamStoreError) {
        let isCurrent = state.withLock { state in
            guard configuration.endpoints[state.current] == endpoint else { return false }
            state.current = (state.current + 1) % configuration.endpoints.count
            return true
        }
        if isCurrent {
            logger.debug("a server of etcd failed", metadata: ["endpoint": "\(endpoint)", "error": "\(error)"])
        }
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Returns the connection to a server. Opens one if there is none, or none that can be used.
    func connection(to endpoint: EtcdEndpoint) -> EventLoopFuture<EtcdConnection> {
        let (connection, new) = state.withLock { state in
            if let existing = state.connections[endpoint] { return (existing.connection, nil as Int?) }
            if state.isClosed { return (Self.closed, nil) }
            state.count += 1
            let number = state.count
            let connection = EtcdConnection.open(
                to: endpoint,
                context: state.context,
                limit: TimeAmount(EtcdTiming.attempt)
            ) { [weak self] in self?.forget(endpoint, number) }
            state.connections[endpoint] = (number, connection)
            return (connection, number)
        }
        if let new { connection.whenFailure { [weak self] _ in self?.forget(endpoint, new) } }
        return connection
    }

    private static var closed: EventLoopFuture<EtcdConnection> {
        let error = EtcdError.notConnected(reason: "the client of etcd is closed")
        return MultiThreadedEventLoopGroup.singleton.next().makeFailedFuture(error)
    }

    /// Removes a connection, unless it is already replaced.
    private func forget(_ endpoint: EtcdEndpoint, _ number: Int) {
        state.withLock { state in
            if state.connections[endpoint]?.number == number { state.connections[endpoint] = nil }
        }
    }
}
