import API
import AccessControl
import Client
import FoundationEssentials
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Transport
import Team
import Tunnels

/// The team of this host: its registry, the connections to the brokers of other hosts, and the team listener.
struct TeamComponents: Sendable {
    let membership: TeamMembership
    let registry: TeamRegistry
    let claims: TeamLeaseClaims
    let brokers: HostBrokers
    let connections = MemberConnections()
    let proxy: TeamProxy
    private let listenerError = TeamListenerError()
    private let monitor: TeamRegistryMonitor
    private let tls: MemberServerTLS
    /// The key and the certificate of this host.
    private let identity: MemberIdentity
    private let unauthenticated = UnauthenticatedConnectionLimiter()
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
    /// - Throws: `DaemonError.state`.
    init?(_ team: LocalTeam, logger: Logger) async throws(DaemonError) {
        let saved: TeamMembership?
        do { saved = try await team.membership() } catch { throw .state(reason: "the team: \(error)") }
        guard let membership = saved else { return nil }
        do {
            let parts = try await team.participation(membership)
            identity = parts.identity
            let members = parts.members
            registry = TeamRegistry(membership, store: parts.store, members: members, logger: logger)
            tls = try MemberServerTLS(identity: identity)
            let security = MemberSecurity(
                tls: try MemberClientTLS(identity: identity),
                members: members,
                connections: connections
            )
            let client = HostClient(security: security, addressRefusal: team.settings.refusal(ofMemberAt:))
            brokers = HostBrokers(members: members, mirror: registry.mirror, client: client)
            proxy = TeamProxy(brokers)
            claims = TeamLeaseClaims(registry.claims, of: membership.host)
            settings = team.settings
            let connection = try team.connections.own(membership)
            monitor = TeamRegistryMonitor {
                if let connection { await team.connector.health(connection) } else { [] }
            }
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
    var host: HostName { membership.host }

    /// The parts of the API for the other hosts.
    var apiServices: TeamServices {
        TeamServices(members: registry.members, proxy: proxy, connections: connections)
    }

    /// The state of the team for `patchbay team`.
    var running: TeamSetup.Running {
        TeamSetup.Running(
            membership: membership,
            key: identity.pin,
            certificate: identity.certificatePEM,
            snapshot: { registry.mirror.snapshot },
            own: { own },
            listenerError: listenerError,
            servers: { [monitor] in monitor.servers }
        )
    }

    /// The entry of this host, with its addresses now. The publisher sets its generation.
    private var own: TeamHost {
        TeamHost(
            name: membership.host,
            version: Version.text,
            addresses: settings.addresses(),
            since: startedAt,
            generation: 0
        )
    }

    /// Returns the planner of tunnels and streams to targets of all hosts.
    func planner(_ local: RoutePlanner, state: StateComponents) -> any TargetPlanner {
        TeamPlanner(
            local: local,
            endpoints: state.endpoints,
            brokers: brokers,
            callers: CallerDirectory(accessStore: state.accessStore)
        )
    }

    /// Returns the services that connect the registry of the team with the other parts, in start order.
    func services(state: StateComponents, sources: SourceComponents) -> [any Service] {
        guard let endpoints = state.remoteEndpoints, let devices = sources.teamDevices else { return [] }
        return [
            registry,
            TeamEventForwarder(
                mirror: registry.mirror,
                endpoints: endpoints,
                devices: devices,
                claims: claims,
                leases: state.leases,
                brokers: brokers,
                logger: logger
            ),
            TeamEntryPublisher(
                publisher: registry.publisher,
                registry: state.registry,
                attachedDevices: sources.attachedDevices,
                host: { own }
            ),
            LostClaimForwarder(claims: registry.claims, leases: state.leases),
            monitor,
            MemberRemovalHandler(
                members: registry.members,
                connections: connections,
                client: brokers.client,
                tunnels: sources.tunnels,
                leases: state.leases,
                logger: logger
            ),
        ]
    }

    /// Returns the team listener.
    func listener(
        at address: SocketAddress,
        makeServer: @escaping @Sendable (consuming Descriptor, UInt16, ListenerSecurity) -> APIServer
    ) -> any Service {
        let security = ListenerSecurity(tls, unauthenticated: unauthenticated)
        return ListenerService(
            "the team listener",
            advice: "other hosts cannot reach this one; change team.listen",
            address: { address },
            logger: logger
        ) { [listenerError, logger] address in
            let server: APIServer
            do {
                let listener = try Listener(on: address)
                server = makeServer(try listener.duplicate(), address.port ?? 0, security)
                listener.close()
                listenerError.set(nil)
            } catch {
                listenerError.set(error)
                throw error
            }
            logger.info("the team listener is open", metadata: ["address": "\(address)"])
            try await server.run()
        }
    }
}
