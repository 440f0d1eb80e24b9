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

/// The broker, put together: every part is made here, and here one can see who hears whom.
struct Daemon: Sendable {
    private let services: [any Service]
    private let notifier: SystemdNotifier
    private let statics: StaticEndpoints
    private let pairing: AccessStore
    private let logger: Logger
    /// Held until the end: the socket's file goes with it.
    private let socket: APIUnixSocket
    /// Held until the end: nobody else may write there.
    private let lock: StateLock

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
        // What cannot do without a descriptor takes it now, and not when there is none left.
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

        // Who may come in.
        let pairing: AccessStore
        do {
            pairing = try AccessStore(in: directory, credentials: environment["CREDENTIALS_DIRECTORY"], logger: logger)
        } catch let error as AccessError {
            throw DaemonError.pairing(what: error.description)
        }
        self.pairing = pairing

        // The board.
        let health = StateHealth(of: directory)
        let registryFile = StateFile<RegistryState>("endpoints", in: directory, health: health, logger: logger)
        let kept = try await Self.reading { () async throws(StateError) in try await registryFile.read() }
        // Revisions go up from run to run even if the last ones were not saved: they start at the clock's milliseconds.
        let now = UInt64(max(0, Date().timeIntervalSince1970 * 1_000))
        let registry = EndpointRegistry(
            records: kept?.records ?? [],
            trusts: await pairing.trusts,
            retired: kept?.retired ?? RetiredIDs(),
            startingAfter: max(now, (kept?.revision ?? 0) + 1_000)
        )
        statics = try await Self.reading { () async throws(StateError) in
            try await StaticEndpoints(
                configured: configuration.endpoints,
                in: configuration.file,
                file: StateFile("static", in: directory, health: health, logger: logger),
                registry: registry,
                health: health
            )
        }

        // The sources, and the ways to what they see.
        let sources = try DiscoverySources(configuration: configuration, environment: environment, logger: logger)
        let dialer = CompositeDialer(lan: LANDialer(), usb: sources.devices?.dialer)
        let phones = AttachedDevices()
        let tunnels = try await Self.reading { () async throws(TunnelError) in
            try await TunnelTable(
                resolver: RegistryRouteResolver(registry: registry, devices: sources.devices, pairing: pairing),
                dialer: dialer,
                store: TunnelStore(directory: directory, health: health, logger: logger),
                limits: TunnelLimits(connections: descriptors.connections),
                logger: logger
            )
        }
        let crowd = ConnectionLimiter()
        let prober = LivenessProber(
            board: ProbedRegistry(registry: registry, bonjour: sources.bonjour, tunnels: tunnels, clients: crowd),
            dialer: dialer
        )
        let ports = sources.devices.map { _ in
            DevicePortScanner(
                ports: configuration.devices.probePorts,
                dialer: dialer,
                isInUse: { dialer.uses.contains($0) },
                isWatched: { crowd.isPresent() },
                logger: logger
            )
        }

        // The doors.
        let facade = try await Self.facade(configuration, environment, phones, dialer, tunnels.relay, logger)
        let start = Date()
        let activation = try SocketActivation(environment: environment)
        let loopback = APITCPSockets(configuration.api, activation: activation, logger: logger)
        let granted = TunnelPolicy(table: tunnels, pairing: pairing)
        let agents = try await Self.reading { () async throws(StateError) in
            try await MCPComponents(
                configuration.mcp,
                in: directory,
                health: health,
                registry: registry,
                tunnels: tunnels,
                granted: granted,
                pairing: pairing,
                phones: phones,
                probe: { await prober.probe($0) },
                dialer: dialer,
                logger: logger
            )
        }
        let broker = APIServices(
            registry: registry,
            tunnels: tunnels,
            pairing: pairing,
            grantedTunnels: granted,
            agents: agents.agents,
            port: loopback.port,
            devices: phones,
            advertisements: BonjourAdvertisementPublisher(source: sources.bonjour),
            statics: statics,
            probe: { await prober.probe($0) },
            storageProblems: { await health.problems() + [pairing.storageProblem].compactMap { $0 } },
            status: {
                await BrokerStatus(
                    of: registry,
                    tunnels: tunnels,
                    phones: phones,
                    sources: sources.statuses() + (facade.map { [$0.status()] } ?? []),
                    pairing: pairing,
                    storage: await health.problems(),
                    anyUser: configuration.api.anyUser,
                    since: start
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
        let owners = OwnerPolicy.ofThisMachine()
        let socket = try APIUnixSocket(
            at: path,
            activation: activation,
            owners: owners,
            anyUser: configuration.api.anyUser
        )
        self.socket = socket
        func door(
            _ listener: consuming Descriptor,
            _ kind: APIServer.Kind,
            onOpen: @escaping @Sendable () async -> Void
        ) -> APIServer {
            APIServer(
                owning: listener,
                kind: kind,
                broker: broker,
                owners: owners,
                origins: Set(configuration.api.allowedOrigins),
                crowd: crowd,
                logger: logger,
                onOpen: onOpen
            )
        }
        let loopbackDoors = loopback.descriptors.map { socket in
            door(Descriptor(owning: socket.number), .tcp(port: socket.port)) {}
        }
        let door = door(try socket.descriptor(), .unix) { [notifier] in
            notifier.ready("serving on \(socket.name)")
            logger.info(
                "the door is open",
                metadata: ["socket": "\(socket.name)", "tcp": "\(loopback.port.map(String.init) ?? "none")"]
            )
        }

        // In the order of the data's way; stopped in reverse.
        var services: [any Service] = [
            hangups, ExpirationService(of: pairing), broker.trust,
            StaleSecretCleaner(registry: registry, pairing: pairing, logger: logger),
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
                DeviceEventForwarder(source: devices, phones: phones, ports: ports, tunnels: tunnels, logger: logger),
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
        services += agents.services
        services += loopbackDoors
        services += [door, ShutdownNotifier(notifier: notifier, logger: logger)]
        // After the tunnels, and so stopped before them: the relay is theirs.
        if let facade { services.append(facade) }
        self.services = services
    }

    /// - Throws: `DaemonError.state` with the message of what was thrown.
    private static func reading<Value, Failure: Error & CustomStringConvertible>(
        _ body: () async throws(Failure) -> Value
    ) async throws(DaemonError) -> Value {
        do { return try await body() } catch { throw .state(what: error.description) }
    }

    /// The door for usbmuxd's own clients, where one is wanted.
    private static func facade(
        _ configuration: Configuration,
        _ environment: [String: String],
        _ phones: AttachedDevices,
        _ dialer: CompositeDialer,
        _ relay: Relay,
        _ logger: Logger
    ) async throws -> UsbmuxServer? {
        guard let path = try configuration.facadePath(environment) else { return nil }
        return UsbmuxServer(
            on: try APIUnixSocket.make(at: path, or: "devices.facade"),
            phones: await phones.deviceLists(),
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

    /// Serves until SIGTERM or SIGINT; SIGHUP ends nothing.
    func run() async throws {
        await statics.announce()
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map { .init(service: $0) },
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: logger
            )
        )
        let end: Result<Void, any Error>
        do { end = .success(try await group.run()) } catch { end = .failure(error) }
        do { try await pairing.close() } catch {
            logger.error("what pairing keeps could not be saved at the end", metadata: ["error": "\(error)"])
        }
        withExtendedLifetime((socket, lock)) {}
        try end.get()
    }
}
