import API
import Devices
import Discovery
import Logging
import Model
import Probing
import ServiceLifecycle
import SystemIO
import Tunnels

/// The sources of sightings, and the parts that connect to what the sources found.
struct SourceComponents: Sendable {
    let discovery: DiscoverySources
    let dialer: CompositeDialer
    let attachedDevices = AttachedDevices()
    let tunnels: TunnelTable
    let prober: LivenessProber
    /// The services in start order: dependencies first.
    let services: [any Service]

    /// Creates the sources and listens on the addresses of the saved tunnels.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - environment: The environment, for the address of usbmuxd.
    ///   - state: The registry and access control.
    ///   - limits: The limits of the tunnels.
    ///   - clients: Tells if the API has clients; probes are rarer without a client.
    ///   - logger: The operator's log.
    /// - Throws: `ConfigurationError.badAddress`, `DaemonError`.
    init(
        _ configuration: Configuration,
        environment: [String: String],
        state: StateComponents,
        limits: TunnelLimits,
        clients: ConnectionLimiter,
        logger: Logger
    ) async throws {
        let registry = state.registry
        let sources = try DiscoverySources(configuration: configuration, environment: environment, logger: logger)
        let dialer = CompositeDialer(network: NetworkDialer(), usb: sources.devices?.dialer)
        let tunnels = try await DaemonError.reading { () async throws(TunnelError) in
            try await TunnelTable(
                resolver: RegistryRouteResolver(
                    registry: registry,
                    devices: sources.devices,
                    accessStore: state.accessStore
                ),
                dialer: dialer,
                store: TunnelStore(directory: state.directory, health: state.health, logger: logger),
                limits: limits,
                logger: logger
            )
        }
        prober = LivenessProber(
            store: ProbedRegistry(registry: registry, bonjour: sources.bonjour, tunnels: tunnels, clients: clients),
            dialer: dialer
        )
        let ports = sources.devices.map { _ in
            DevicePortScanner(
                ports: configuration.devices.probePorts,
                dialer: dialer,
                isInUse: { dialer.uses.contains($0) },
                isWatched: { clients.hasRecentClient() },
                logger: logger
            )
        }
        (discovery, self.dialer, self.tunnels) = (sources, dialer, tunnels)

        var services: [any Service] = []
        if let bonjour = sources.bonjour {
            services += [
                bonjour, SightingForwarder(registry: registry, events: bonjour.events, logger: logger),
                AdvertisementLogger(bonjour: bonjour, logger: logger),
            ]
        }
        if let devices = sources.devices, let ports {
            let directory = DeviceDirectory(of: devices, dialer: devices.dialer, logger: logger)
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
        services += [
            tunnels, TunnelTargetRefresher(registry: registry, tunnels: tunnels, ports: ports), prober,
            EndpointLogger(registry: registry, logger: logger), TunnelLogger(tunnels: tunnels, logger: logger),
        ]
        self.services = services
    }
}
