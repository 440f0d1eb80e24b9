package import FoundationEssentials
package import Logging
import Model
import ServiceLifecycle

/// The part of one broker in a team: its session, what it publishes, what it sees of other hosts, and its claims.
package struct TeamRegistry: Service {
    package let membership: TeamMembership
    package let members: TeamMembers
    package let session: TeamSession
    package let publisher: TeamPublisher
    package let watcher: TeamWatcher
    package let claims: TeamClaims

    /// - Parameters:
    ///   - membership: The team and the name of this host.
    ///   - store: The team registry.
    ///   - members: The saved members.
    ///   - clock: The clock of session leases and pauses. It must run on while the system is suspended.
    ///   - now: Returns the time of the wall clock.
    ///   - logger: The logger.
    package init(
        _ membership: TeamMembership,
        store: any TeamStore,
        members: TeamMembers,
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() },
        logger: Logger
    ) {
        let host = membership.host
        self.membership = membership
        self.members = members
        session = TeamSession(store: store, clock: clock, now: now, logger: logger)
        publisher = TeamPublisher(host: host, session: session)
        claims = TeamClaims(host: host, session: session)
        watcher = TeamWatcher(
            host: host,
            team: membership.team,
            store: store,
            members: members,
            clock: clock,
            now: now,
            logger: logger
        )
    }

    /// Runs all parts until the service group shuts down. The entries of this host are deleted at the end.
    package func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for service in [session, publisher, watcher, claims] as [any Service] {
                group.addTask { try await service.run() }
            }
            try await group.waitForAll()
        }
    }
}
