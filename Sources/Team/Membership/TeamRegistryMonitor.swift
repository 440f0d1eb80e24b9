import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// Asks the servers of the team's registry for their state, because a full server still answers reads.
///
/// `patchbay status` and `/health` show the last answers, and so wait for no server.
final class TeamRegistryMonitor: Service {
    /// The time between two questions.
    private static let interval = Duration.seconds(10)

    private let clock: any Clock<Duration>
    private let health: @Sendable () async -> [TeamRegistryServer]
    private let answers = Mutex<[TeamRegistryServer]>([])

    /// - Parameters:
    ///   - clock: The clock of the pauses.
    ///   - health: Returns the servers with their problems.
    init(clock: any Clock<Duration> = PollerClock(), health: @escaping @Sendable () async -> [TeamRegistryServer]) {
        (self.clock, self.health) = (clock, health)
    }

    /// The servers with their problems at the last question; empty before it.
    var servers: [TeamRegistryServer] { answers.withLock { $0 } }

    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            while !Task.isCancelled {
                let servers = await health()
                answers.withLock { $0 = servers }
                try? await clock.sleep(for: Self.interval)
            }
        }
    }
}

extension SourceStatus {
    /// The status of a team with these servers; nil if all of them work.
    static func registry(_ servers: [TeamRegistryServer]) -> SourceStatus? {
        let failures = servers.compactMap { server in server.problem.map { "\(server.url): \($0)" } }
        guard !failures.isEmpty else { return nil }
        let detail = "etcd " + failures.joined(separator: "; ")
        // The alarm of one server stops the writes of the whole cluster.
        let isFull = failures.contains { $0.contains("NOSPACE") || $0.contains("database space exceeded") }
        let hint = isFull ? "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm: docs/team.md" : "patchbay team"
        let isDown = isFull || failures.count == servers.count
        return SourceStatus(name: "team", state: isDown ? .missing : .ok, detail: detail, hint: hint)
    }
}
