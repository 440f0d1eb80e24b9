import API
import Apps
import Devices
import Discovery
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Team
import Tunnels

/// The ways from this broker to apps: routes, connections and tunnels.
struct TunnelComponents: Sendable {
    let relay = Relay()
    let planner: TransportPlanner
    let resolver: ApprovedRouteResolver
    /// Connects to the addresses of sightings, and counts the uses of ports.
    let dialer: RelayDialer
    /// Nil if the state debugger is disabled in the configuration.
    let debugLink: DebugLinkComponents?
    let leasePolicy: LeasePolicy
    let tunnels: TunnelTable

    /// Listens on the addresses of the saved tunnels.
    ///
    /// - Throws: `DaemonError`.
    init(
        _ startup: Startup,
        state: StateComponents,
        sources: DiscoverySources,
        attachedDevices: AttachedDevices,
        team: CurrentTeam
    ) async throws {
        let debugLink = try DebugLinkComponents(
            startup.configuration.debugLink,
            registry: state.registry,
            dialer: RelayDialer(NetworkPlanner(), relay: relay),
            bonjour: sources.bonjour,
            logger: startup.logger
        )
        self.debugLink = debugLink
        planner = TransportPlanner(network: NetworkPlanner(), usb: sources.planner, debugTools: debugLink?.tools)
        dialer = RelayDialer(planner, relay: relay)
        resolver = ApprovedRouteResolver(
            registry: state.registry,
            accessStore: state.accessStore,
            requireDevice: sources.requireDevice
        )
        let localPlanner = RoutePlanner(resolver: resolver, planner: planner)
        let leasePolicy = LeasePolicy(
            registry: state.registry,
            leases: state.leases,
            // A phone that this broker cannot reach is leased by its own host.
            isOnOtherHosts: { team.running != nil && !attachedDevices.contains($0) }
        )
        self.leasePolicy = leasePolicy
        tunnels = try await DaemonError.reading { [relay] () async throws(TunnelError) in
            try await TunnelTable(
                planner: team.planner(localPlanner, endpoints: state.endpoints, accessStore: state.accessStore),
                relay: relay,
                store: TunnelStore(directory: state.directory, health: state.health, logger: startup.logger),
                policy: leasePolicy,
                limits: TunnelLimits(connections: startup.descriptors.connections, sockets: startup.sockets),
                logger: startup.logger
            )
        }
    }
}
