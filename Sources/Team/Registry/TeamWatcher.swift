package import AccessControl
package import FoundationEssentials
package import Logging
package import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// Follows the registry of the team: a list, then every change.
///
/// While the team registry is unreachable, the last known entries stay and are marked as stale. Each recovery begins
/// with a new list, of which only the differences are reported.
package final class TeamWatcher: Service {
    /// All events since `init`, for a single consumer; ends with `run()`. The buffer is unbounded.
    package let events: AsyncStream<TeamEvent>

    private let continuation: AsyncStream<TeamEvent>.Continuation
    private let current: Mutex<TeamSnapshot>
    /// True after the log line about ignored entries. A host could otherwise fill the log.
    private let hasLoggedUnreadable = Atomic(false)
    private let host: HostName
    private let team: SanitizedText
    private let store: any TeamStore
    private let members: TeamMembers
    private let clock: any Clock<Duration>
    private let now: @Sendable () -> Date
    private let logger: Logger
    /// The time after which a registry of which a part is missing is listed again, with the next change.
    private static let missingInterval = Duration.seconds(30)

    /// - Parameters:
    ///   - host: The name of this host.
    ///   - team: The name of the team. The registry of another team is not used.
    ///   - store: The team registry.
    ///   - members: Receives the members of each list and of each change.
    ///   - clock: The clock of the pauses after failures.
    ///   - now: Returns the time of the wall clock.
    ///   - logger: The logger.
    package init(
        host: HostName,
        team: SanitizedText,
        store: any TeamStore,
        members: TeamMembers,
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() },
        logger: Logger
    ) {
        self.host = host
        self.team = team
        self.store = store
        self.members = members
        self.clock = clock
        self.now = now
        self.logger = logger
        current = Mutex(TeamSnapshot(staleSince: now()))
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// The members, hosts, phones and claims now.
    package var snapshot: TeamSnapshot { current.withLock { $0 } }

    /// The running broker of another host; nil if there is none.
    package func host(_ name: HostName) -> TeamHost? { current.withLock { $0.hosts[name] } }

    /// The other hosts with a phone, sorted by name.
    package func routes(to udid: UDID) -> [DeviceRoute] { current.withLock { $0.routes(to: udid) } }

    /// The claim of a target, of any host; nil if there is none.
    package func claim(of target: LeaseTarget) -> TeamClaim? { current.withLock { $0.claims[target] } }

    /// The time since which the entries of other hosts may be outdated. Nil while they are current.
    package var staleSince: Date? { current.withLock { $0.staleSince } }

    /// Follows the team registry until the service group shuts down.
    package func run() async throws {
        await cancelWhenGracefulShutdown { await self.follow() }
        continuation.finish()
    }

    private func follow() async {
        var view = TeamView(of: host, staleSince: now())
        var backoff = Backoff(from: .milliseconds(100), to: .seconds(2))
        var listing = TeamListing(store)
        var known: String?
        while !Task.isCancelled {
            var isListedAgain = false
            do {
                let sinceList = ElapsedTimer(clock)
                let revision = try await list(&listing, into: &view)
                if known != nil { logger.notice("the registry of the team is current again") }
                known = nil
                for try await step in store.changes(of: TeamKey.root, after: revision) {
                    view.removedKeys = members.removedKeys
                    let isListed = step.revision <= listing.claimsRevision
                    await publish(view.apply(isListed ? step.changes.filter { !$0.isOfClaim } : step.changes), of: view)
                    // Deletions make room for claims that were ignored.
                    let hasRoom =
                        (view.hasTooManyClaims || listing.missing.contains(TeamKey.claims))
                        && step.changes.contains(where: \.isDeletionOfClaim)
                    isListedAgain = hasRoom || !listing.missing.isEmpty && sinceList.elapsed >= Self.missingInterval
                    if isListedAgain { break }
                    backoff.reset()
                }
                if Task.isCancelled { return }
            } catch TeamStoreError.compacted {
                isListedAgain = true
            } catch {
                if Task.isCancelled { return }
                if known != "\(error)" {
                    logger.warning("cannot follow the registry of the team", metadata: ["reason": "\(error)"])
                }
                known = "\(error)"
                let failure = error as? TeamError ?? (error as? TeamStoreError).map(TeamError.store)
                current.withLock { $0.failure = failure }
            }
            // The entries are as current as the new list that follows at once.
            if !isListedAgain { await publish(view.mark(staleSince: now()), of: view) }
            try? await backoff.wait(clock: clock)
        }
    }

    /// Lists the team registry, and reports the differences.
    ///
    /// - Returns: The revision of the list.
    private func list(_ listing: inout TeamListing, into view: inout TeamView) async throws -> Int64 {
        let known = listing.missing
        let list = try await listing.list()
        for prefix in listing.missing.subtracting(known) {
            logger.warning(
                """
                cannot list some entries of the team: etcd is too slow, or a host writes too many; remove such a host with \
                `patchbay team remove HOST`
                """,
                metadata: ["prefix": "\(prefix)"]
            )
        }
        let meta = list.entries.first { $0.key == TeamKey.meta.text }
        try TeamMeta.check(meta.flatMap { TeamCoding.value(TeamMeta.self, from: $0.value) }, isOf: team)
        view.removedKeys = members.removedKeys
        let events = view.replace(with: list.entries)
        await publish(events + view.mark(staleSince: nil), of: view, isList: true)
        return list.revision
    }

    private func publish(_ events: [TeamEvent], of view: TeamView, isList: Bool = false) async {
        current.withLock { snapshot in
            for event in events { snapshot.apply(event) }
            snapshot.unreadableKeys = view.unreadable
            if isList { snapshot.failure = nil }
        }
        if let key = view.unreadable.first, !hasLoggedUnreadable.exchange(true, ordering: .relaxed) {
            logger.warning(
                "ignored entries of the team that are unreadable or too many; later ones are only counted",
                metadata: ["count": "\(view.unreadable.count)", "key": "\(key.text)"]
            )
        }
        // A removed member is refused before its entries disappear.
        if isList || events.contains(where: \.isOfMember) {
            await members.replace(with: Array(snapshot.members.values))
        }
        for event in events { continuation.yield(event) }
    }
}

extension TeamStoreChanges.Change {
    fileprivate var isDeletionOfClaim: Bool {
        if case .delete = self { isOfClaim } else { false }
    }

    fileprivate var isOfClaim: Bool {
        switch self {
        case .put(let entry): entry.key.hasPrefix(TeamKey.claims)
        case .delete(let key): key.hasPrefix(TeamKey.claims)
        }
    }
}

extension TeamEvent {
    fileprivate var isOfMember: Bool {
        switch self {
        case .member, .memberRemoved: true
        default: false
        }
    }
}
