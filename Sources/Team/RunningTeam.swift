import AccessControl
import Client
import FoundationEssentials
package import Logging
package import Model
import Registry
import ServiceLifecycle
import SystemIO
import Transport
import Tunnels

/// The team of this host while the broker takes part in it: its registry, and connections to the brokers of other hosts.
package struct RunningTeam: Sendable {
    package let membership: TeamMembership
    package let connections = MemberConnections()
    /// TLS of the team listener.
    package let tls: MemberServerTLS
    package let listenerError = TeamListenerError()
    private let registry: TeamRegistry
    let brokers: HostBrokers
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
            settings = team.settings
            let connection = try team.connections.own(membership)
            monitor = TeamRegistryMonitor {
                if let connection { await team.connector.health(connection) } else { [] }
            }
            renewer = CertificateRenewer(
                file: team.folder.identity,
                inUse: inUse,
                renewal: { [brokers, watcher = registry.watcher] request in
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
    package var state: TeamSetup.Running {
        TeamSetup.Running(
            membership: membership,
            key: inUse.identity.pin,
            certificate: { inUse.identity.certificatePEM },
            expiresAt: { inUse.identity.expiresAt },
            startsAt: { inUse.identity.startsAt },
            snapshot: { registry.watcher.snapshot },
            own: { own },
            listenerError: listenerError,
            servers: { [monitor] in monitor.servers }
        )
    }

    /// Returns whether the files of the team are those of this one. Applies a renewed certificate of the same key.
    func continues(_ team: LocalTeam) async -> Bool {
        guard let parts = try? await team.participation(membership), (try? await team.membership()) == membership,
            parts.identity.pin == inUse.identity.pin
        else { return false }
        try? await renewer.check()
        return inUse.identity.certificatePEM == (try? team.folder.identity.load())?.certificatePEM
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

    /// Returns a new certificate of this host for a signing request.
    private static func renewal(
        _ request: String,
        of team: LocalTeam,
        _ membership: TeamMembership,
        _ watcher: TeamWatcher,
        _ brokers: HostBrokers
    ) async throws -> TeamRenewal {
        if membership.isAuthority { return try await team.ownRenewal(request) }
        // The authority may have moved. Any host may claim to have it, and only the authority can sign.
        let claiming = watcher.snapshot.hosts.values.filter { $0.isAuthority == true }.map(\.name).sorted()
        var failure: any Error = HostError.absent(membership.authority)
        for host in [membership.authority] + claiming.filter({ $0 != membership.authority }) {
            do {
                let api = HostAPI(host: host) { request in
                    try await brokers.send(request, to: host, within: TeamProxy.standardTimeout)
                }
                return try await api.renew(TeamRenewalSpec(request: request))
            } catch { failure = error }
        }
        throw failure
    }

    /// Creates the services that connect the registry of the team with the other parts of the broker.
    ///
    /// - Parameters:
    ///   - parts: The other parts.
    ///   - onOwnRemoval: Called when the team has removed this host.
    /// - Returns: The services in start order.
    func services(_ parts: TeamService.Parts, onOwnRemoval: @escaping @Sendable () -> Void) -> [any Service] {
        [
            registry,
            TeamEventConsumer(
                watcher: registry.watcher,
                endpoints: parts.endpoints,
                devices: parts.devices,
                claims: claims,
                leases: parts.leases,
                brokers: brokers,
                logger: logger
            ),
            TeamEntryPublisher(
                publisher: registry.publisher,
                registry: parts.registry,
                attachedDevices: parts.attachedDevices,
                host: { own }
            ),
            LostClaimConsumer(claims: claims, leases: parts.leases),
            monitor, renewer,
            MemberRemovalHandler(
                host: host,
                members: registry.members,
                connections: connections,
                client: brokers.client,
                tunnels: parts.tunnels,
                leases: parts.leases,
                onOwnRemoval: onOwnRemoval,
                logger: logger
            ),
        ]
    }

    /// Resets the connections of all other hosts, and ends the leases of their clients.
    func disconnect(_ leases: LeaseService) async {
        for member in members.all where member.name != host {
            brokers.client.closeIdle(to: member.name)
            leases.endLeases(ofClientsOn: member.name)
        }
        await connections.closeRefused(by: NoMembers())
    }
}

/// The members of no team.
private struct NoMembers: MemberDirectory {
    func accepts(_ host: HostName, key: KeyPin) -> Bool { false }
}
