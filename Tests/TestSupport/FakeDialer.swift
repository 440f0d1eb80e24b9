package import Model
import Synchronization
package import SystemIO

/// A dialer with the behaviour of a test; it reports the beginning and the end of each dial.
package final class FakeDialer: Dialer, ConnectPlanner {
    /// The number of dials, at the beginning of each one.
    package let begun = AsyncStream.makeStream(of: Int.self)
    /// An element for each dial that returned or threw.
    package let ended = AsyncStream.makeStream(of: Void.self)
    /// The other ends of the connections of a `connected()` dialer; each stays open with this dialer.
    package let peers: AsyncStream<SocketStream>
    private let behaviour: @Sendable (Route) async throws -> Connection
    private let dialed = Mutex<[Route]>([])

    package convenience init(_ behaviour: @escaping @Sendable (Route) async throws -> Connection) {
        self.init(peers: AsyncStream { $0.finish() }, behaviour)
    }

    private init(
        peers: AsyncStream<SocketStream>,
        _ behaviour: @escaping @Sendable (Route) async throws -> Connection
    ) { (self.peers, self.behaviour) = (peers, behaviour) }

    /// Creates a dialer that never connects.
    package static func silent() -> FakeDialer { FakeDialer { _ in try await neverConnect() } }

    /// Creates a dialer that connects every route to a new unix socket pair; the test has the other ends.
    package static func connected(
        halfClose: Connection.HalfClose = .propagates,
        linkCheck: LinkCheck? = nil
    ) -> FakeDialer {
        let (peers, continuation) = AsyncStream.makeStream(of: SocketStream.self)
        return FakeDialer(peers: peers) { _ in
            let (near, far) = SocketStream.pair()
            continuation.yield(far)
            return Connection(descriptor: near.handOver(), halfClose: halfClose, linkCheck: linkCheck)
        }
    }

    /// The dialed routes in order.
    package var routes: [Route] { dialed.withLock { $0 } }

    /// Returns a plan that dials.
    package func plan(for route: Route) -> ConnectPlan { ConnectPlan(route: route) { [self] in try await dial(route) } }

    package func dial(_ route: Route) async throws -> Connection {
        let count = dialed.withLock { routes in
            routes.append(route)
            return routes.count
        }
        begun.continuation.yield(count)
        defer { ended.continuation.yield() }
        return try await behaviour(route)
    }

    /// Waits until the task is cancelled.
    package static func neverConnect() async throws -> Connection {
        try await Task.sleep(for: .seconds(600))
        throw DialError(.timedOut, "the test has ended")
    }
}
