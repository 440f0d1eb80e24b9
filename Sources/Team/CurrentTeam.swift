package import AccessControl
package import Client
import Logging
package import Model
package import Registry
import ServiceLifecycle
import Synchronization
import SystemIO
package import Tunnels

/// The team in which the broker takes part now; none without one. The broker joins and leaves teams while it runs, so
/// each request asks again.
package final class CurrentTeam: Sendable {
    /// A change that `TeamService` makes. The promise is completed after it.
    struct Change: Sendable {
        enum Kind: Sendable { case useSaved, end }

        let kind: Kind
        let promise = Promise<Void>()
    }

    /// The time for which a command waits for the first list of the team registry.
    private static let firstListLimit = Duration.seconds(2)

    private let team = Mutex<RunningTeam?>(nil)
    private let usage = HostUsage()
    /// For `TeamService` alone.
    let changes: AsyncStream<Change>
    private let continuation: AsyncStream<Change>.Continuation

    /// - Parameter team: The team at the start; nil without one.
    package init(_ team: RunningTeam? = nil) {
        (changes, continuation) = AsyncStream.makeStream()
        set(team)
    }

    /// The team; nil without one.
    package var running: RunningTeam? { team.withLock { $0 } }

    /// Passes requests of clients on to the brokers of other hosts.
    package var proxy: TeamProxy { TeamProxy(self, usage: usage) }

    func set(_ running: RunningTeam?) { team.withLock { $0 = running } }

    /// Requests a change. A broker that stops makes none.
    func request(_ kind: Change.Kind) -> Promise<Void> {
        let change = Change(kind: kind)
        if case .enqueued = continuation.yield(change) {} else { change.promise.complete(.success(())) }
        return change.promise
    }

    private func change(_ kind: Change.Kind) async {
        let promise = request(kind)
        await cancelWhenGracefulShutdown { try? await promise.value() }
    }

    /// Returns the planner of tunnels and streams to targets of all hosts.
    package func planner(
        _ local: RoutePlanner,
        endpoints: any EndpointListing,
        accessStore: AccessStore
    ) -> any TargetPlanner {
        TeamPlanner(
            local: local,
            endpoints: endpoints,
            brokers: { [self] in running?.brokers },
            callers: CallerDirectory(accessStore: accessStore)
        )
    }
}

extension CurrentTeam: HostConnector {
    package func send(
        _ request: OutgoingRequest,
        to host: HostName,
        within timeout: Duration
    ) async throws -> any HostResponse {
        guard let brokers = running?.brokers else { throw HostError.absent(host) }
        return try await brokers.send(request, to: host, within: timeout)
    }
}

extension CurrentTeam: TeamParticipation {
    package var state: TeamSetup.Running? { running?.state }

    package func useSavedTeam() async {
        await change(.useSaved)
        _ = try? await withTimeout(Self.firstListLimit, clock: ContinuousClock()) { [self] in
            // A list of changes would belong to one team, and another one can replace it during the wait.
            while running?.state.snapshot().staleSince != nil { try await Task.sleep(for: .milliseconds(20)) }
        }
    }

    package func end() async { await change(.end) }
}
