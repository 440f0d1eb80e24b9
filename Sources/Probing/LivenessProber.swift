package import Model
import ServiceLifecycle
package import SystemIO

/// Finds out in seconds what Bonjour tells after minutes or never: whether the listed endpoints still answer.
///
/// A probe is a TCP connection that is closed at once: it costs the app nothing and needs no secret.
package struct LivenessProber: Service {
    private let board: any LivenessStore
    private let dialer: any Dialer
    private let clock = PollerClock()

    /// How many endpoints are probed at once: all that one dead host may have listed (`EndpointTable.limitPerHost`), so that
    /// they wait for its silence together and not one after the other.
    static let width = 64
    /// How long one route may take: the kernel needs 3.07 s to find out that nobody answers ARP.
    static let patience = Duration.seconds(3)
    /// How long a route is waited for before the next one is tried beside it, and the most that any has to wait. A probe
    /// takes 4 s at most, however many addresses a dead host has, and one that answers at once is dialled once.
    static let headStart = Duration.milliseconds(250)
    static let longestWait = Duration.seconds(1)

    package init(board: any LivenessStore, dialer: any Dialer) {
        self.board = board
        self.dialer = dialer
    }

    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            let start = clock.now
            var (schedule, random) = (ProbeSchedule(), SystemRandomNumberGenerator())
            var revision: UInt64?
            while true {
                if let list = await board.list(ifChangedSince: revision) {
                    schedule.update(list.endpoints)
                    revision = list.revision
                }
                let now = start.duration(to: clock.now)
                await probe(schedule.take(at: now, watched: await board.watched(), using: &random))
                try await clock.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Probes one endpoint now and tells the board.
    package func probe(_ endpoint: Endpoint) async {
        guard !Task.isCancelled else { return }
        // An unapproved advert may name any address: it is not dialled, not even to probe it.
        let routes = endpoint.approvedRoutes.map(\.route)
        guard !routes.isEmpty || endpoint.routes.isEmpty else { return }
        let failure =
            routes.isEmpty ? DialError(.noRoute, "no route to \(endpoint.id) is known") : await attempt(routes)
        // A probe that our own shutdown cut short says nothing about the endpoint.
        guard !Task.isCancelled else { return }
        await board.report(failure, of: endpoint.id)
    }

    private func probe(_ endpoints: [Endpoint]) async {
        await withTaskGroup { group in
            var waiting = endpoints[...]
            for endpoint in waiting.prefix(Self.width) { group.addTask { await probe(endpoint) } }
            waiting = waiting.dropFirst(Self.width)
            while await group.next() != nil {
                if let endpoint = waiting.popFirst() { group.addTask { await probe(endpoint) } }
            }
        }
    }

    /// Tries every route, each a little after the one before it, until one answers.
    ///
    /// - Returns: Why the best route does not work, if none does.
    private func attempt(_ routes: [Route]) async -> DialError? {
        if let only = routes.first, routes.count == 1 { return await attempt(only) }
        return await withTaskGroup(of: (Int, DialError?).self) { group in
            for (index, route) in routes.enumerated() {
                group.addTask {
                    // Cancelled when another route has answered; then nobody asks for this one.
                    try? await clock.sleep(for: min(Self.headStart * index, Self.longestWait))
                    return (index, await attempt(route))
                }
            }
            var best: (index: Int, failure: DialError)?
            for await (index, failure) in group {
                guard let failure else {
                    group.cancelAll()
                    return nil
                }
                if best.map({ index < $0.index }) ?? true { best = (index, failure) }
            }
            return best?.failure
        }
    }

    private func attempt(_ route: Route) async -> DialError? {
        do {
            try Task.checkCancellation()
            let isReached = try await withDeadline(Self.patience, clock: clock) { [dialer] in
                let carrier = try await dialer.dial(route)
                _ = consume carrier
                return true
            }
            return isReached == nil ? DialError(.timedOut, "\(route) did not answer within 3 s") : nil
        } catch let failure as DialError {
            return failure
        } catch {
            return DialError(.failed, "\(route) could not be probed: \(error)")
        }
    }
}
