import API
import AccessControl
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

/// The sources of sightings, and the parts that connect to what the sources found.
struct SourceComponents: Sendable {
    let discovery: DiscoverySources
    /// The phones of this host.
    let attachedDevices: AttachedDevices
    let deviceNotes: DeviceNotes
    let reverseTunnels: ReverseTunnelTable
    /// The phones that clients see: those of all hosts of the team.
    let devices: TeamDevices
    let brokers = NearbyBrokers()
    let appUsers = PhoneAppUsers()
    let connections: TunnelComponents
    let prober: LivenessProber
    let launchWatcher: LaunchWatcher
    /// Nil if devices are disabled in the configuration.
    let ports: DevicePortScanner?
    let openAgents: OpenAgentsIdentifier
    let profiles: ProfileService

    var dialer: RelayDialer { connections.dialer }
    var tunnels: TunnelTable { connections.tunnels }
    var leasePolicy: LeasePolicy { connections.leasePolicy }
    var debugLink: DebugLinkComponents? { connections.debugLink }

    /// Creates the sources and listens on the addresses of the saved tunnels.
    ///
    /// - Throws: `ConfigurationError.badAddress`, `DaemonError`.
    init(_ startup: Startup, state: StateComponents, team: CurrentTeam) async throws {
        let (configuration, registry, logger) = (startup.configuration, state.registry, startup.logger)
        let attachedDevices = AttachedDevices()
        self.attachedDevices = attachedDevices
        devices = TeamDevices(local: attachedDevices, hosts: state.remoteEndpoints.hosts)
        let discovery = try DiscoverySources(startup)
        self.discovery = discovery
        (deviceNotes, reverseTunnels) = try await DaemonError.reading { () async throws(StateError) in
            func file<Value>(_ name: String) -> StateFile<Value> {
                StateFile(name, in: state.directory, health: state.health, logger: logger)
            }
            return (
                try await DeviceNotes(file: file("device-notes"), devices: attachedDevices),
                try await ReverseTunnelTable(of: discovery.adb, file: file("reverse-tunnels"), logger: logger)
            )
        }
        let connections = try await TunnelComponents(
            startup,
            state: state,
            sources: discovery,
            attachedDevices: attachedDevices,
            team: team
        )
        self.connections = connections
        let (dialer, planner) = (connections.dialer, connections.planner)
        let isInUse: @Sendable (Route) -> Bool = { planner.uses.contains($0) }
        prober = LivenessProber(
            store: RegistryLivenessStore(
                registry: registry,
                tunnels: connections.tunnels,
                clients: RegistryLivenessStore.Clients(
                    isPresent: { startup.clients.hasRecentClient() },
                    arrivals: { startup.clients.arrivals() }
                ),
                resolveAgain: { [bonjour = discovery.bonjour] in bonjour?.resolveAgain(at: $0) }
            ),
            dialer: dialer,
            isInUse: isInUse,
            launches: state.launches
        )
        // A watch is no use of a port: it must not keep other parts from probing.
        launchWatcher = LaunchWatcher(
            launches: state.launches,
            dialer: RelayDialer(planner.uncounted, relay: connections.relay)
        )
        ports = discovery.devices.map { _ in
            DevicePortScanner(
                ports: ProbePorts(configuration.devices.probePorts, profiles: startup.profiles.profiles),
                dialer: dialer,
                isInUse: isInUse,
                isWatched: { startup.clients.hasRecentClient() },
                launches: state.launches,
                logger: logger
            )
        }
        openAgents = OpenAgentsIdentifier(registry: registry, probe: OpenAgentsProbe(dialer: dialer), logger: logger)
        profiles = ProfileService(
            startup.profiles.entries.map(\.summary),
            resolver: connections.resolver,
            checker: ProfileChecker(dialer: dialer, isInUse: isInUse)
        )
    }

    /// Returns the services in start order: dependencies first.
    ///
    /// - Throws: `ConfigurationError.unusable`.
    func services(_ startup: Startup, state: StateComponents) throws -> [any Service] {
        let (registry, logger) = (state.registry, startup.logger)
        return [devices] + bonjourServices(startup, state: state)
            + deviceServices(startup, state: state) + (debugLink?.services ?? []) + [
                tunnels,
                TunnelTargetRefresher(list: state.endpoints, registry: registry, tunnels: tunnels, ports: ports),
                prober, openAgents, launchWatcher, EndpointLogger(of: registry, logger: logger),
                TunnelLogger(of: tunnels, logger: logger),
                RetiredIDCleaner(registry) { [tunnels] in
                    await state.accessStore.namedEndpoints.union(tunnels.endpoints)
                },
            ] + (try readvertiser(startup, registry: registry).map { [$0] } ?? [])
    }

    private func bonjourServices(_ startup: Startup, state: StateComponents) -> [any Service] {
        guard let bonjour = discovery.bonjour else { return [] }
        let (registry, logger) = (state.registry, startup.logger)
        let authCodes = AuthCodeStore(registry: registry, accessStore: state.accessStore, logger: logger)
        return [
            bonjour, authCodes,
            SightingConsumer(
                registry,
                of: bonjour.events.filter { [brokers] in await !brokers.apply($0) },
                logger: logger,
                observer: { await authCodes.observe($0) }
            ),
            AdvertisementLogger(of: bonjour, logger: logger),
        ]
    }

    private func deviceServices(_ startup: Startup, state: StateComponents) -> [any Service] {
        guard let devices = discovery.devices, let ports else { return [] }
        let (registry, logger) = (state.registry, startup.logger)
        let lockdownDialer = RelayDialer(devices.planner, relay: connections.relay)
        let directory = DeviceDirectory(of: devices, dialer: lockdownDialer, logger: logger)
        let sockets = discovery.adb.map { DevToolsSocketMonitor(of: $0, logger: logger) }
        return [discovery.adb].compactMap { $0 } + [
            reverseTunnels, devices, directory,
            DeviceListUpdater(
                sources: [directory.snapshots] + [discovery.adb?.snapshots].compactMap { $0 },
                registry: registry,
                attachedDevices: attachedDevices,
                ports: ports,
                devToolsSockets: sockets,
                tunnels: tunnels,
                logger: logger
            ),
            ports,
        ] + phoneAppServices(startup, state: state, ports: ports)
            + (sockets.map { [$0, SightingConsumer(registry, of: $0.events, logger: logger)] } ?? [])
    }

    /// Applies the servers that the scanner finds, and stores the secrets that apps on Android phones log.
    private func phoneAppServices(
        _ startup: Startup,
        state: StateComponents,
        ports: DevicePortScanner
    ) -> [any Service] {
        let (registry, logger) = (state.registry, startup.logger)
        guard let adb = discovery.adb, startup.configuration.devices.readLogs else {
            return [SightingConsumer(registry, of: ports.events, logger: logger)]
        }
        let apps = PhoneAppMonitor(of: adb, logger: logger) { ports.set($0, of: $1) }
        let secrets = LoggedSecretStore(
            registry: registry,
            accessStore: state.accessStore,
            scanner: ports,
            users: appUsers,
            isOwner: apps.isOwner,
            logger: logger
        )
        return [
            apps, secrets,
            SightingConsumer(registry, of: ports.events, logger: logger) { await secrets.observe($0) },
        ]
    }

    private func readvertiser(_ startup: Startup, registry: EndpointRegistry) throws -> Readvertiser? {
        guard startup.configuration.discovery.readvertise.contains(.usb), let bonjour = discovery.bonjour else {
            return nil
        }
        return Readvertiser(
            registry: registry,
            tunnels: tunnels,
            publisher: bonjour,
            owner: try startup.configuration.readvertiseOwner(),
            logger: startup.logger
        )
    }
}
