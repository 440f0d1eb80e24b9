import AccessControl
import Model
import Synchronization

/// The hosts to which this broker passed requests of its clients within the last hour.
///
/// Large results stay at the broker of their host. A client that reads one later asks its own broker.
final class HostUsage: Sendable {
    /// A client at another host.
    struct Use: Hashable, Sendable {
        /// `Principal.holder` of the client.
        let holder: String
        let host: HostName
        let caller: TeamCaller
    }

    /// The lifetime of an artifact.
    private static let lifetime = Duration.seconds(3_600)
    private static let limit = 256

    private let uses = Mutex<[Use: ContinuousClock.Instant]>([:])

    func record(_ principal: Principal, _ caller: TeamCaller, at host: HostName) {
        let use = Use(holder: principal.holder, host: host, caller: caller)
        uses.withLock { uses in
            uses[use] = .now
            guard uses.count > Self.limit, let oldest = uses.min(by: { $0.value < $1.value }) else { return }
            uses[oldest.key] = nil
        }
    }

    /// Returns the uses of a client, the newest first. An owner may read what any client may read.
    func uses(of principal: Principal) -> [Use] {
        let now = ContinuousClock.now
        return uses.withLock { uses in
            uses = uses.filter { now - $0.value < Self.lifetime }
            return uses.filter { principal.isOwner || $0.key.holder == principal.holder }
                .sorted { $0.value > $1.value }.map(\.key)
        }
    }
}
