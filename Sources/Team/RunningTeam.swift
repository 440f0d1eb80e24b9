package import AccessControl
import Client
import FoundationEssentials
package import Logging
package import Model
package import Registry
package import ServiceLifecycle
import SystemIO
import Transport
package import Tunnels

/// The team of this host while the broker runs: its registry, and the connections to the brokers of other hosts.
package struct RunningTeam: Sendable {
    package let membership: TeamMembership
    package let connections = MemberConnections()
    package let proxy: TeamProxy
    /// TLS of the team listener.
    package let tls: MemberServerTLS
    package let listenerError = TeamListenerError()
    private let registry: TeamRegistry
    private let brokers: HostBrokers
    private let monitor: TeamRegistryMonitor
    /// The key and the certificate of this host.
    private let inUse: IdentityInUse
    private let renewer: CertificateRenewer
    private let settings: TeamHostSettings
    private let startedAt = Date()
    private let logger: Logger

    /// Reads the files of the team; nil if this host belongs to no team, or cannot take part in it.
    ///
    /// `TeamSetup` reports the reason why it cannot. Everything else of the broker works.
    ///
    /// - Parameters:
    ///   - team: The files of the team, and the connections to its registry.
    ///   - logger: The operator's log.
    /// - Throws: `TeamError.state`.
    package init?(_ team: LocalTeam, logger: Logger) async throws(TeamError) {
        guard let membership = try await team.membership() else { return nil }
        do {
            let parts = try await team.participation(membership)
            let identity = parts.identity
            let members = parts.members
            registry = TeamRegistry(membership, store: parts.store, members: members, logger: logger)
            tls = try MemberServerTLS(identity: identity)
            let clientTLS = try MemberClientTLS(identity: identity)
            inUse = IdentityInUse(identity) { [tls, store = parts.store] renewed in
                try tls.use(renewed)
                try clientTLS.use(renewed)
                if let connection = try team.connections.own(membership) { try store.use(connection) }
            }
            let client = HostClient(addressRefusal: team.settings.refusal(ofMemberAt:)) { [connections] host in
                MemberSecurity(tls: clientTLS, members: members, connections: connections, host: host)
            }
            brokers = HostBrokers(members: members, watcher: registry.watcher, client: client)
            proxy = TeamProxy(brokers)
            settings = team.settings
            let connection = try team.connections.own(membership)
            monitor = TeamRegistryMonitor {
                if let connection { await team.connector.health(connection) } else { [] }
            }
            renewer = CertificateRenewer(
                file: team.folder.identity,
                inUse: inUse,
                certificate: { [brokers, watcher = registry.watcher] request in
                    try await Self.renewal(request, of: team, membership, watcher, brokers)
                },
                logger: logger
            )
            self.membership = membership
            self.logger = logger
        } catch {
            let problem = Problem(ofTeam: error) ?? Problem(.unavailable, "\(error)")
            logger.error(
                "this host does not take part in its team",
                metadata: [
                    "team": "\(membership.team)", "reason": "\(problem.detail)",
                    "try": "\(problem.hint ?? "patchbay team")",
                ]
            )
            return nil
        }
    }

    /// The name of this host.
    package var host: HostName { membership.host }

    package var members: TeamMembers { registry.members }

    package var claims: TeamClaims { registry.claims }

    /// The state of the team for `patchbay team`.
    package var running: TeamSetup.Running {
        TeamSetup.Running(
            membership: membership,
            key: inUse.identity.pin,
            certificate: { inUse.identity.certificatePEM },
            snapshot: { registry.watcher.snapshot },
            own: { own },
            listenerError: listenerError,
            servers: { [monitor] in monitor.servers },
            useSavedCertificate: { [renewer] in try await renewer.check() }
        )
    }

    /// The entry of this host, with its addresses now. The publisher sets its generation.
    private var own: TeamHost {
        TeamHost(
            name: membership.host,
            version: Version.text,
            addresses: settings.addresses(),
            since: startedAt,
            generation: 0,
            isAuthority: membership.isAuthority ? true : nil
        )
    }

    /// Returns a new certificate of this host for a signing request, both as PEM.
    private static func renewal(
        _ request: String,
        of team: LocalTeam,
        _ membership: TeamMembership,
        _ watcher: TeamWatcher,
        _ brokers: HostBrokers
    ) async throws -> String {
        if membership.isAuthority {
            let (_, authority) = try await team.requiredAuthority()
            return try authority.issue(.host(membership.host), request: request).pem
        }
        // The authority may have moved. Any host may claim to have it, and only the authority can sign.
        let claiming = watcher.snapshot.hosts.values.filter { $0.isAuthority == true }.map(\.name).sorted()
        var failure: any Error = HostError.absent(membership.authority)
        for host in [membership.authority] + claiming.filter({ $0 != membership.authority }) {
            do {
                let api = HostAPI(host: host) { request in
                    try await brokers.send(request, to: host, within: TeamProxy.standardTimeout)
                }
                return try await api.renew(TeamRenewalSpec(request: request)).certificate
            } catch { failure = error }
        }
        throw failure
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
            brokers: brokers,
            callers: CallerDirectory(accessStore: accessStore)
        )
    }

    /// Creates the services that connect the registry of the team with the other parts.
    ///
    /// - Parameters:
    ///   - local: The endpoints of this host.
    ///   - remote: Gets the endpoints of the other hosts.
    ///   - attachedDevices: The phones of this host.
    ///   - devices: Gets the phones of the other hosts.
    ///   - leases: The leases of this host.
    ///   - tunnels: The tunnels, whose targets may be on a removed host.
    /// - Returns: The services in start order.
    package func services(
        local: EndpointRegistry,
        remote: RemoteEndpoints,
        attachedDevices: any DeviceListing,
        devices: TeamDevices,
        leases: LeaseService,
        tunnels: TunnelTable
    ) -> [any Service] {
        [
            registry,
            TeamEventConsumer(
                watcher: registry.watcher,
                endpoints: remote,
                devices: devices,
                claims: claims,
                leases: leases,
                brokers: brokers,
                logger: logger
            ),
            TeamEntryPublisher(
                publisher: registry.publisher,
                registry: local,
                attachedDevices: attachedDevices,
                host: { own }
            ),
            LostClaimConsumer(claims: claims, leases: leases),
            monitor, renewer,
            MemberRemovalHandler(
                members: registry.members,
                connections: connections,
                client: brokers.client,
                tunnels: tunnels,
                leases: leases,
                logger: logger
            ),
        ]
    }
}
