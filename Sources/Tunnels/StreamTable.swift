package import Model
import Synchronization
package import SystemIO

/// The streams to targets without a local address. Their client is another connection of the process.
package final class StreamTable: Sendable {
    private let dependencies: TunnelDependencies
    private let metrics: TunnelMetrics
    private let streams = Mutex<[ObjectIdentifier: TargetStream]>([:])

    /// The name of all streams together in events, in place of the ID of a tunnel.
    private static let id = "stream"

    init(_ dependencies: TunnelDependencies) {
        self.dependencies = dependencies
        metrics = dependencies.metrics(of: Self.id, for: Self.id)
    }

    /// The counters of all streams together.
    package var statistics: TunnelStatistics { metrics.statistics }

    /// The targets of the open streams.
    package var targets: Set<TunnelTarget> { streams.withLock { Set($0.values.map(\.target)) } }

    /// Dials a target, and relays between the target and a client until both have ended.
    ///
    /// - Parameters:
    ///   - target: The target.
    ///   - owner: The client that asked for the stream.
    ///   - client: Called after the dial. Returns the connected socket of the client; its close ends the stream.
    /// - Throws: `DialError`, or the error of `client`. The target is then closed.
    package func open(
        _ target: TunnelTarget,
        for owner: TunnelOwner,
        client: (TargetStream) async throws -> Descriptor
    ) async throws {
        guard metrics.connectionAccepted() else { throw dependencies.connectionLimit.failure }
        let stream = TargetStream(target, of: owner, metrics: metrics, relay: dependencies.relay)
        let id = ObjectIdentifier(stream)
        streams.withLock { $0[id] = stream }
        defer { streams.withLock { $0[id] = nil } }
        do {
            let start = MonotonicInstant.now
            let snapshot = try await dependencies.planner.snapshot(of: target, for: owner)
            let relay = dependencies.relay
            let dialed =
                if let absence = snapshot.absence {
                    try await relay.connect(snapshot.plans, to: absence)
                } else { try await relay.connect(snapshot.plans) }
            metrics.connected(after: MonotonicInstant.now - start)
            do { try stream.relay(try await client(stream), dialed) } catch {
                dialed.reject()
                throw error
            }
        } catch {
            metrics.connectionClosed()
            if let failure = error as? DialError { metrics.connectionFailed(failure) }
            throw error
        }
        await stream.waitForEnd()
    }

    /// Closes the streams to these targets over revoked routes.
    ///
    /// When it returns, none of them relays another byte. Pending dials over these routes are dropped too.
    package func closeStreams(to targets: Set<TunnelTarget>, over routes: RevokedRoutes) async {
        let affected = streams.withLock { $0.values.filter { targets.contains($0.target) } }
        for stream in affected { await stream.close(over: routes) }
    }

    /// Closes the streams over routes that may no longer be dialed.
    func closeForbidden() async {
        for stream in streams.withLock({ Array($0.values) }) {
            do {
                let refused = try await dependencies.planner.snapshot(of: stream.target, for: stream.owner).refused
                if !refused.isEmpty { await stream.close(over: .addresses(refused)) }
            } catch {
                if error.reason == .forbidden { await stream.close(over: .network) }
            }
        }
    }
}

/// One stream: a dial, and then a relayed connection.
package final class TargetStream: RelayObserver {
    private struct State {
        var route: Route?
        var isRelayed = false
        /// The routes that were revoked since the start of the dial.
        var revoked: [RevokedRoutes] = []
        /// True after `close()`, which may come before the relay has the sockets.
        var isClosed = false
    }

    let target: TunnelTarget
    let owner: TunnelOwner
    private let metrics: TunnelMetrics
    private let connections: Relay
    private let state = Mutex(State())
    private let isEnded = AsyncLatch()

    fileprivate init(_ target: TunnelTarget, of owner: TunnelOwner, metrics: TunnelMetrics, relay: Relay) {
        self.target = target
        self.owner = owner
        self.metrics = metrics
        connections = relay
    }

    /// Closes the stream with RST in both directions. When it returns, the stream relays no more bytes.
    package func close() async {
        state.withLock { $0.isClosed = true }
        await connections.closeConnections(of: self)
    }

    /// Passes both sockets to the relay. The caller closes the target after an error.
    fileprivate func relay(_ client: consuming Descriptor, _ target: RelayTarget) throws(DialError) {
        var client = Optional(client)
        // The lock is held while the relay takes the sockets, so that `close(over:)` cannot miss the stream.
        state.withLock { state in
            let isRevoked = state.revoked.contains { $0.contains(target.route) }
            guard !state.isClosed, !isRevoked, let client = client.take() else { return }
            (state.isRelayed, state.route) = (true, target.route)
            connections.adopt(client: client, target: target, observer: self)
        }
        guard let client = client.take() else { return }
        client.reset()
        throw DialError(.forbidden, "the approval of the route was revoked during the dial; approve it again")
    }

    fileprivate func waitForEnd() async { await isEnded.wait() }

    fileprivate func close(over routes: RevokedRoutes) async {
        let mustClose = state.withLock { state in
            if !state.isRelayed { state.revoked.append(routes) }
            return state.isRelayed && routes.contains(state.route)
        }
        if mustClose { await close() }
    }

    package func relayed(up: Int, down: Int, at now: MonotonicInstant) { metrics.relayed(up: up, down: down, at: now) }

    package func ended(_ outcome: RelayOutcome) {
        metrics.ended(outcome)
        isEnded.open()
    }
}
