import API
import AccessControl
import Devices
import Discovery
import FoundationEssentials
import Glibc
import Logging
import Model
import Probing
import Registry
import ServiceLifecycle
import SystemIO
import Tunnels
import UnixSignals
import UsbmuxServer

/// The composition root: creates and connects every part of the broker.
struct Daemon: Sendable {
    private let services: [any Service]
    private let notifier: SystemdNotifier
    private let staticEndpoints: StaticEndpoints
    private let accessStore: AccessStore
    private let logger: Logger
    /// Retained until the end, because deallocation removes the socket file.
    private let socket: APIUnixSocket
    /// Retained until the end, so that no other broker writes to the state directory.
    private let lock: StateLock

    /// Creates every part of the broker; opens the state directory and the sockets.
    ///
    /// - Throws: `ConfigurationError`, `DaemonError`.
    init(
        configuration: Configuration,
        socket: String?,
        stateDirectory: String?,
        environment: [String: String]
    ) async throws {
        let logger = Self.logger(at: configuration.broker.logLevel)
        self.logger = logger
        notifier = SystemdNotifier(environment: environment)
        let hangups = await HangupNotice(logger: logger)
        // These need descriptors and are created while some are available.
        _ = (Poller.shared, ThreadExecutor.files)
        let descriptors = FileDescriptorBudget.make(wanted: configuration.tunnels.maxConnections, logger: logger)
        let directory = try StateDirectory.prepare(
            explicit: stateDirectory ?? configuration.broker.stateDirectory,
            environment: environment
        )
        lock = try StateLock(on: directory)
        logger.info(
            "patchbayd starts",
            metadata: [
                "version": "\(Version.text)", "pid": "\(getpid())", "state": "\(directory)",
                "configuration": "\(configuration.file ?? "none, every key is at its default")",
            ]
        )

        // Access control.
        let accessStore: AccessStore
        do {
            accessStore = try AccessStore(
                in: directory,
                credentials: environment["CREDENTIALS_DIRECTORY"],
                logger: logger
            )
        } catch let error as AccessError {
            throw DaemonError.accessState(reason: error.description)
        }
        self.accessStore = accessStore

        // The registry.
        let health = StateHealth(of: directory)
        let registryFile = StateFile<RegistryState>("endpoints", in: directory, health: health, logger: logger)
        let saved = try await Self.reading { () async throws(StateError) in try await registryFile.read() }
        // Revisions must increase across runs, also if the last ones were not saved. They therefore start at the
        // clock's milliseconds.
        let now = UInt64(max(0, Date().timeIntervalSince1970 * 1_000))
        let registry = EndpointRegistry(
            records: saved?.records ?? [],
            trusts: await accessStore.trusts,
            retired: saved?.retired ?? RetiredIDs(),
            startingAfter: max(now, (saved?.revision ?? 0) + 1_000)
        )
        staticEndpoints = try await Self.reading { () async throws(StateError) in
            try await StaticEndpoints(
                configured: configuration.endpoints,
                in: configuration.file,
                file: StateFile("static", in: directory, health: health, logger: logger),
                registry: registry,
                health: health
            )
        }

        // Discovery sources and dialers.
        let sources = try DiscoverySources(configuration: configuration, environment: environment, logger: logger)
        let dialer = CompositeDialer(network: LANDialer(), usb: sources.devices?.dialer)
        let attachedDevices = AttachedDevices()
        let tunnels = try await Self.reading { () async throws(TunnelError) in
            try await TunnelTable(
                resolver: RegistryRouteResolver(registry: registry, devices: sources.devices, accessStore: accessStore),
                dialer: dialer,
                store: TunnelStore(directory: directory, health: health, logger: logger),
                limits: TunnelLimits(connections: descriptors.connections),
                logger: logger
            )
        }
        let connectionLimiter = ConnectionLimiter()
        let prober = LivenessProber(
            store: ProbedRegistry(
                registry: registry,
                bonjour: sources.bonjour,
                tunnels: tunnels,
                clients: connectionLimiter
            ),
            dialer: dialer
        )
        let ports = sources.devices.map { _ in
            DevicePortScanner(
                ports: configuration.devices.probePorts,
                dialer: dialer,
                isInUse: { dialer.uses.contains($0) },
                isWatched: { connectionLimiter.hasRecentClient() },
                logger: logger
            )
        }

        // Servers.
        let usbmuxServer = try await Self.makeUsbmuxServer(
            configuration,
            environment: environment,
            devices: attachedDevices,
            dialer: dialer,
            relay: tunnels.relay,
            logger: logger
        )
        let start = Date()
        let activation = try SocketActivation(environment: environment)
        let tcpSockets = APITCPSockets(configuration.api, activation: activation, logger: logger)
        let tunnelPolicy = TunnelPolicy(registry: registry, table: tunnels, accessStore: accessStore)
        let mcp = try await Self.reading { () async throws(StateError) in
            try await MCPComponents(
                configuration.mcp,
                in: directory,
                health: health,
                registry: registry,
                tunnels: tunnels,
                tunnelPolicy: tunnelPolicy,
                accessStore: accessStore,
                attachedDevices: attachedDevices,
                probe: { await prober.probe($0) },
                dialer: dialer,
                logger: logger
            )
        }
        let apiServices = APIServices(
            registry: registry,
            tunnels: tunnels,
            accessStore: accessStore,
            tunnelPolicy: tunnelPolicy,
            mcp: mcp.servers,
            tcpPort: tcpSockets.port,
            devices: attachedDevices,
            advertisements: BonjourAdvertisementPublisher(source: sources.bonjour),
            staticEndpoints: staticEndpoints,
            probe: { await prober.probe($0) },
            storageProblems: { await health.problems() + [accessStore.storageProblem].compactMap { $0 } },
            status: {
                await BrokerStatus(
                    of: registry,
                    tunnels: tunnels,
                    attachedDevices: attachedDevices,
                    sources: sources.statuses() + (usbmuxServer.map { [$0.status()] } ?? []),
                    accessStore: accessStore,
                    storage: await health.problems(),
                    allowAnyUser: configuration.api.anyUser,
                    startedAt: start
                )
            }
        )
        let path = AbsolutePath.of(
            BrokerSocketPath.listen(
                explicit: socket ?? configuration.broker.socket,
                environment: environment,
                userID: geteuid()
            )
        )
        let owners = OwnerPolicy.current()
        let socket = try APIUnixSocket(
            at: path,
            activation: activation,
            owners: owners,
            anyUser: configuration.api.anyUser
        )
        self.socket = socket
        func makeServer(
            _ listener: consuming Descriptor,
            _ transport: APIServer.Transport,
            onOpen: @escaping @Sendable () async -> Void
        ) -> APIServer {
            APIServer(
                owning: listener,
                transport: transport,
                services: apiServices,
                owners: owners,
                origins: Set(configuration.api.allowedOrigins),
                limiter: connectionLimiter,
                logger: logger,
                onOpen: onOpen
            )
        }
        let tcpServers = tcpSockets.descriptors.map { socket in
            makeServer(Descriptor(owning: socket.number), .tcp(port: socket.port)) {}
        }
        let unixServer = makeServer(try socket.descriptor(), .unix) { [notifier] in
            notifier.ready("serving on \(socket.name)")
            logger.info(
                "the API is open",
                metadata: ["socket": "\(socket.name)", "tcp": "\(tcpSockets.port.map(String.init) ?? "none")"]
            )
        }

        // In start order, dependencies first; stopped in reverse order.
        var services: [any Service] = [
            hangups, ExpirationService(of: accessStore), apiServices.approvalService,
            StaleSecretCleaner(registry: registry, accessStore: accessStore, logger: logger),
            RegistryPersister(registry: registry, file: registryFile, logger: logger),
        ]
        if let bonjour = sources.bonjour {
            services += [
                bonjour, SightingForwarder(registry: registry, events: bonjour.events, logger: logger),
                AdvertisementLogger(bonjour: bonjour, logger: logger),
            ]
        }
        if let devices = sources.devices, let ports {
            services += [
                devices,
                DeviceEventForwarder(
                    source: devices,
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
            WatchdogFeeder(notifier: notifier) {
                _ = await registry.revision
                _ = await tunnels.list()
            },
            EndpointLogger(registry: registry, logger: logger), TunnelLogger(tunnels: tunnels, logger: logger),
        ]
        services += mcp.services
        services += tcpServers
        services += [unixServer, ShutdownNotifier(notifier: notifier, logger: logger)]
        // Started after the tunnels and stopped before them, because the tunnels own the relay.
        if let usbmuxServer { services.append(usbmuxServer) }
        self.services = services
    }

    /// Converts the errors of a loading step.
    ///
    /// - Throws: `DaemonError.state` with the message of the original error.
    private static func reading<Value, Failure: Error & CustomStringConvertible>(
        _ body: () async throws(Failure) -> Value
    ) async throws(DaemonError) -> Value {
        do { return try await body() } catch { throw .state(reason: error.description) }
    }

    /// Creates the usbmuxd-compatible server if the configuration enables it.
    private static func makeUsbmuxServer(
        _ configuration: Configuration,
        environment: [String: String],
        devices: AttachedDevices,
        dialer: CompositeDialer,
        relay: Relay,
        logger: Logger
    ) async throws -> UsbmuxServer? {
        guard let path = try configuration.usbmuxServerPath(environment) else { return nil }
        return UsbmuxServer(
            on: try APIUnixSocket.make(at: path, or: "devices.serve_usbmuxd"),
            devices: await devices.deviceLists(),
            dialer: dialer,
            usbmuxd: NativeUsbmuxClient(address: try configuration.usbmuxdAddress(environment)),
            relay: relay,
            logger: logger
        )
    }

    private static func logger(at level: String) -> Logger {
        var logger = Logger(label: "patchbayd") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = Logger.Level(rawValue: level) ?? .info
        return logger
    }

    /// Serves until SIGTERM or SIGINT; SIGHUP is ignored.
    func run() async throws {
        await staticEndpoints.announce()
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map { .init(service: $0) },
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: logger
            )
        )
        let end: Result<Void, any Error>
        do { end = .success(try await group.run()) } catch { end = .failure(error) }
        do { try await accessStore.close() } catch {
            logger.error("the access state could not be saved at shutdown", metadata: ["error": "\(error)"])
        }
        withExtendedLifetime((socket, lock)) {}
        try end.get()
    }
}
