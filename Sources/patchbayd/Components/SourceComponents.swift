import API
import Devices
import Discovery
import Logging
import Model
import Apps
import Registry
import ServiceLifecycle
import SystemIO
import Tunnels

/// The sources of sightings, and the parts that connect to what the sources found.
struct SourceComponents: Sendable {
    let discovery: DiscoverySources
    let dialer: RelayDialer
    /// The phones of this host.
    let attachedDevices: AttachedDevices
    /// The phones of all hosts of the team; nil without one.
    let teamDevices: TeamDevices?
    let brokers = NearbyBrokers()
    let tunnels: TunnelTable
    let leasePolicy: LeasePolicy
    let prober: LivenessProber
    let launchWatcher: LaunchWatcher
    /// Nil if devices are disabled in the configuration.
    let ports: DevicePortScanner?
    let openAgents: OpenAgentsIdentifier
    let profiles: ProfileLibrary
    /// Nil if the state debugger is disabled in the configuration.
    let debugLink: DebugLinkComponents?
    /// The services in start order: dependencies first.
    let services: [any Service]

    /// The phones that clients see.
    var devices: any DeviceProvider { teamDevices ?? attachedDevices }

    /// Creates the sources and listens on the addresses of the saved tunnels.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - profiles: The profiles to recognise.
    ///   - environment: The environment, for the address of usbmuxd.
    ///   - state: The registry and access control.
    ///   - team: The team of this host; nil without one.
    ///   - limits: The limits of the tunnels.
    ///   - clients: Tells if the API has clients; probes are rarer without a client.
    ///   - logger: The operator's log.
    /// - Throws: `ConfigurationError.badAddress`, `DaemonError`.
    init(
        _ configuration: Configuration,
        profiles: ProfileCatalog,
        environment: [String: String],
        state: StateComponents,
        team: TeamComponents?,
        limits: TunnelLimits,
        clients: ConnectionLimiter,
        logger: Logger
    ) async throws {
        let registry = state.registry
        let attachedDevices = AttachedDevices()
        self.attachedDevices = attachedDevices
        let teamDevices = state.endpoints.hosts.map { TeamDevices(local: attachedDevices, hosts: $0) }
        self.teamDevices = teamDevices
        let sources = try DiscoverySources(configuration: configuration, environment: environment, logger: logger)
        let relay = Relay()
        let debugLink = try DebugLinkComponents(
            configuration.debugLink,
            registry: registry,
            dialer: RelayDialer(NetworkPlanner(), relay: relay),
            bonjour: sources.bonjour,
            logger: logger
        )
        let planner = CompositePlanner(
            network: NetworkPlanner(),
            usb: sources.devices?.planner,
            debugTools: debugLink?.tools
        )
        let resolver = RegistryRouteResolver(
            registry: registry,
            devices: sources.devices,
            accessStore: state.accessStore
        )
        let localPlanner = RoutePlanner(resolver: resolver, planner: planner)
        let leasePolicy = LeasePolicy(
            registry: registry,
            leases: state.leases,
            // A phone that this broker cannot reach is leased by its own host.
            isOnOtherHosts: { team != nil && !attachedDevices.contains($0) }
        )
        self.leasePolicy = leasePolicy
        let tunnels = try await DaemonError.reading { () async throws(TunnelError) in
            try await TunnelTable(
                planner: team?.planner(localPlanner, state: state) ?? localPlanner,
                relay: relay,
                store: TunnelStore(directory: state.directory, health: state.health, logger: logger),
                policy: leasePolicy,
                limits: limits,
                logger: logger
            )
        }
        let dialer = RelayDialer(planner, relay: relay)
        prober = LivenessProber(
            store: RegistryLivenessStore(
                registry: registry,
                bonjour: sources.bonjour,
                tunnels: tunnels,
                clients: clients
            ),
            dialer: dialer,
            isInUse: { planner.uses.contains($0) },
            launches: state.launches
        )
        // A watch is no use of a port: it must not keep other parts from probing.
        launchWatcher = LaunchWatcher(launches: state.launches, dialer: RelayDialer(planner.uncounted, relay: relay))
        let ports = sources.devices.map { _ in
            DevicePortScanner(
                ports: ProbePorts(configuration.devices.probePorts, profiles: profiles.profiles),
                dialer: dialer,
                isInUse: { planner.uses.contains($0) },
                isWatched: { clients.hasRecentClient() },
                launches: state.launches,
                logger: logger
            )
        }
        self.ports = ports
        openAgents = OpenAgentsIdentifier(registry: registry, probe: OpenAgentsProbe(dialer: dialer), logger: logger)
        (discovery, self.dialer, self.tunnels) = (sources, dialer, tunnels)
        self.debugLink = debugLink
        self.profiles = ProfileLibrary(
            catalog: profiles,
            resolver: resolver,
            checker: ProfileChecker(dialer: dialer, isInUse: { planner.uses.contains($0) })
        )

        var services: [any Service] = [teamDevices].compactMap { $0 }
        if let bonjour = sources.bonjour {
            let authCodes = AuthCodeStore(registry: registry, accessStore: state.accessStore, logger: logger)
            services += [
                bonjour, authCodes,
                SightingForwarder(
                    registry: registry,
                    events: bonjour.events,
                    authCodes: authCodes,
                    brokers: brokers,
                    logger: logger
                ),
                AdvertisementLogger(of: bonjour, logger: logger),
            ]
        }
        if let devices = sources.devices, let ports {
            let lockdownDialer = RelayDialer(devices.planner, relay: relay)
            let directory = DeviceDirectory(of: devices, dialer: lockdownDialer, logger: logger)
            services += [
                devices, directory,
                DeviceEventForwarder(
                    source: directory,
                    registry: registry,
                    attachedDevices: attachedDevices,
                    ports: ports,
                    tunnels: tunnels,
                    logger: logger
                ),
                ports,
                SightingForwarder(registry: registry, events: ports.events, logger: logger),
            ]
        }
        services += debugLink?.services ?? []
        services += [
            tunnels, TunnelTargetRefresher(list: state.endpoints, registry: registry, tunnels: tunnels, ports: ports),
            prober,
            openAgents,
            launchWatcher,
            EndpointLogger(of: registry, logger: logger), TunnelLogger(of: tunnels, logger: logger),
            RetiredIDCleaner(registry: registry, accessStore: state.accessStore, tunnels: tunnels),
        ]
        if configuration.discovery.readvertise.contains(.usb) {
            services.append(
                Readvertiser(
                    registry: registry,
                    tunnels: tunnels,
                    publisher: BonjourAdvertisementPublisher(source: sources.bonjour),
                    owner: try configuration.readvertiseOwner(),
                    logger: logger
                )
            )
        }
        self.services = services
    }
}
