package import Model
import ServiceLifecycle
package import Sockets

/// Finds out in seconds what Bonjour tells after minutes or never: whether the listed endpoints still answer.
///
/// A probe is a TCP connection that is closed at once: it costs the app nothing and needs no secret.
package struct LivenessProber: Service {
    private let board: any LivenessBoard
    private let dialer: any Dialer
    private let clock: ContinuousClock

    /// How many probes run at once, and how long one may take.
    static let width = 32
    static let patience = Duration.seconds(3)

    package init(board: any LivenessBoard, dialer: any Dialer) {
        self.board = board
        self.dialer = dialer
        clock = ContinuousClock()
    }

    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            let start = clock.now
            var schedule = ProbeSchedule()
            while true {
                let due = schedule.take(from: await board.endpointsToProbe(), at: start.duration(to: clock.now))
                await probe(due)
                try await clock.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Probes one endpoint now and tells the board.
    package func probe(_ endpoint: Endpoint) async {
        guard !Task.isCancelled else { return }
        var failure: DialFailure? = DialFailure(.noRoute, "no route to \(endpoint.id) is known")
        for route in endpoint.routes {
            failure = await attempt(route)
            if failure == nil { break }
        }
        // A probe that our own shutdown cut short says nothing about the endpoint.
        guard !Task.isCancelled else { return }
        await board.report(failure, of: endpoint.id)
    }

    private func probe(_ endpoints: [Endpoint]) async {
        await withDiscardingTaskGroup { group in
            var waiting = endpoints[...]
            let lanes = Swift.min(Self.width, waiting.count)
            let perLane = lanes == 0 ? 0 : (waiting.count + lanes - 1) / lanes
            while !waiting.isEmpty {
                let lane = waiting.prefix(perLane)
                waiting = waiting.dropFirst(perLane)
                group.addTask {
                    for endpoint in lane { await probe(endpoint) }
                }
            }
        }
    }

    private func attempt(_ route: Route) async -> DialFailure? {
        do {
            let isReached = try await withDeadline(Self.patience, clock: clock) { [dialer] in
                let carrier = try await dialer.dial(route)
                _ = consume carrier
                return true
            }
            return isReached == nil ? DialFailure(.timedOut, "\(route) did not answer within 3 s") : nil
        } catch let failure as DialFailure {
            return failure
        } catch {
            return DialFailure(.failed, "\(route) could not be probed: \(error)")
        }
    }
}
