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
    private let health: @Sendable () async -> [TeamServerHealth]
    private let answers = Mutex<[TeamServerHealth]>([])

    /// - Parameters:
    ///   - clock: The clock of the pauses.
    ///   - health: Returns the servers with their problems.
    init(clock: any Clock<Duration> = PollerClock(), health: @escaping @Sendable () async -> [TeamServerHealth]) {
        (self.clock, self.health) = (clock, health)
    }

    /// The servers with their problems at the last question; empty before it.
    var servers: [TeamServerHealth] { answers.withLock { $0 } }

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
    static func registry(_ servers: [TeamServerHealth]) -> SourceStatus? {
        let failures = servers.map(\.server).compactMap { server in server.problem.map { "\(server.url): \($0)" } }
        guard !failures.isEmpty else {
            return servers.clockProblem.map {
                SourceStatus(name: "team", state: .ok, detail: $0.detail, hint: $0.hint)
            }
        }
        let detail = "etcd " + failures.joined(separator: "; ")
        // The alarm of one server stops the writes of the whole cluster.
        let isFull = failures.contains { $0.contains("NOSPACE") || $0.contains("database space exceeded") }
        let hint = isFull ? "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm: docs/team.md" : "patchbay team"
        let isDown = isFull || failures.count == servers.count
        return SourceStatus(name: "team", state: isDown ? .missing : .ok, detail: detail, hint: hint)
    }
}

extension [TeamServerHealth] {
    /// The problem of a clock; nil if most of the servers that answer agree with this host.
    var clockProblem: Problem? {
        let wrong = filter { $0.clockSkew != nil }
        guard let first = wrong.first, let skew = first.clockSkew else { return nil }
        let difference = "\(abs(skew)) s \(skew > 0 ? "ahead of" : "behind") that of"
        let isOwn = wrong.count * 2 > count { $0.server.problem == nil }
        return Problem(
            .conflict,
            "the clock of this host is \(difference) \(first.server.url)",
            hint: "timedatectl, \(isOwn ? "here and there" : "on that machine")"
        )
    }
}
