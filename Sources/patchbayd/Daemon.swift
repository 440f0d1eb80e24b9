import API
import AccessControl
import CoreMetrics
import Devices
import Glibc
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Tunnels
import UnixSignals

/// The composition root: creates and connects every part of the broker.
struct Daemon: Sendable {
    private let services: [any Service]
    private let state: StateComponents
    private let logger: Logger
    /// Retained until the end, because deallocation removes the socket file.
    private let socket: APIUnixSocket
    /// Retained until the end, so that no other broker writes to the state directory.
    private let lock: StateDirectoryLock

    /// Creates every part of the broker; opens the state directory and the sockets.
    ///
    /// - Parameters:
    ///   - loaded: The valid configuration.
    ///   - options: The options of the command line that replace keys, in the names of the keys.
    ///   - environment: The environment.
    ///   - reload: Reads the configuration again.
    /// - Throws: `ConfigurationError`, `DaemonError`.
    init(
        _ loaded: LoadedConfiguration,
        options: [String: String],
        environment: [String: String],
        reload: @escaping @Sendable () throws(ConfigurationError) -> LoadedConfiguration
    ) async throws {
        var configuration = loaded.configuration
        let profiles = loaded.profiles
        configuration.broker.socket = options["broker.socket"] ?? configuration.broker.socket
        configuration.broker.stateDirectory = options["broker.state_directory"] ?? configuration.broker.stateDirectory
        configuration.broker.logLevel = options["broker.log_level"] ?? configuration.broker.logLevel
        let level = LogLevel(configuration.broker.logLevel)
        let logger = Logger(label: "patchbayd") { _ in BrokerLogHandler(environment: environment, level: level) }
        self.logger = logger
        // Before the parts that create metrics.
        let metrics = PrometheusRegistry()
        MetricsSystem.bootstrap(metrics)
        let notifier = SystemdNotifier(environment: environment)
        // Installed first: SIGHUP terminates a process without a handler.
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        // These need descriptors and are created while some are available.
        _ = (Poller.shared, ThreadExecutor.files)
        let descriptors = FileDescriptorBudget.make(wanted: configuration.tunnels.maxConnections, logger: logger)
        let directory = try StateDirectory.prepare(
            explicit: configuration.broker.stateDirectory,
            environment: environment
        )
        lock = try StateDirectoryLock(on: directory)
        logger.info(
            "patchbayd starts",
            metadata: [
                "version": "\(Version.text)", "pid": "\(getpid())", "state": "\(directory)",
                "configuration": "\(configuration.file ?? "none, every key is at its default")",
            ]
        )

        let localTeam = LocalTeam(
            TeamFolder(in: directory),
            settings: TeamHostSettings(configuration),
            connector: EtcdConnector(logger: logger),
            logger: logger
        )
        let team = try await TeamComponents(localTeam, logger: logger)
        let state = try await StateComponents(
            in: directory,
            configuration: configuration,
            profiles: profiles.profiles,
            environment: environment,
            team: team,
            logger: logger
        )
        self.state = state
        await state.accessStore.setAuditRetention(configuration.audit.retention)
        let limiter = ConnectionLimiter()
        if profiles.entries.isEmpty {
            logger.warning("no profiles are installed; debug servers such as app-debug are listed as tcp")
        }
        ServiceFolders.openTunnels(environment: environment)
        let sources = try await SourceComponents(
            configuration,
            profiles: profiles,
            environment: environment,
            state: state,
            team: team,
            limits: TunnelLimits(
                connections: descriptors.connections,
                sockets: ServiceFolders.sockets(environment: environment)
            ),
            clients: limiter,
            logger: logger
        )
        let store = ConfigurationStore(
            loaded,
            overrides: Self.overrides(
                of: configuration,
                options: options,
                directory: directory,
                environment: environment
            )
        )
        let servers = try await ServerComponents(
            configuration,
            configurationStore: store,
            metrics: metrics,
            environment: environment,
            state: state,
            sources: sources,
            team: team,
            teamSetup: TeamSetup(localTeam, running: team?.running),
            limiter: limiter,
            notifier: notifier,
            logger: logger
        )
        self.socket = servers.socket
        let watchdog = WatchdogFeeder(
            notifier: notifier,
            checks: [
                .init(name: "registry") { _ = await state.registry.revision },
                .init(name: "tunnels") { _ = await sources.tunnels.list() },
                .init(name: "access control") { _ = await state.accessStore.wallClockLag },
                .init(name: "configuration") { _ = await store.effective },
                .init(name: "descriptors") { try? await PollerClock().sleep(for: .milliseconds(1)) },
            ],
            logger: logger
        )
        let reloader = ConfigurationReloader(
            store: store,
            signals: hangups,
            notifier: notifier,
            logger: logger,
            load: reload,
            targets: ReloadTargets(
                logLevel: level,
                accessStore: state.accessStore,
                staticEndpoints: state.staticEndpoints,
                approvals: servers.approvalService
            )
        )
        // In start order, dependencies first; stopped in reverse order.
        services =
            [reloader, servers.approvalService] + state.services + sources.services
            + (team?.services(state: state, sources: sources) ?? []) + [watchdog] + servers.services
            + [StartupCodeReleaser()]
    }

    /// The values that come from the command line, the environment, and defaults that depend on the environment.
    private static func overrides(
        of configuration: Configuration,
        options: [String: String],
        directory: String,
        environment: [String: String]
    ) -> [ConfigurationStore.Override] {
        var overrides = options.sorted { $0.key < $1.key }.map { key, value in
            let flag = "--" + key.drop { $0 != "." }.dropFirst().replacing("_", with: "-")
            return ConfigurationStore.Override(key: key, value: value, source: .option, place: flag)
        }
        func add(_ key: String, _ value: String, from variables: [String]) {
            let variable = variables.first { environment[$0]?.isEmpty == false }
            overrides.append(
                .init(
                    key: key,
                    value: value,
                    source: variable == nil ? .default : .environment,
                    place: variable.map { "$\($0)" }
                )
            )
        }
        let socket = AbsolutePath.of(BrokerSocketPath.listen(environment: environment, userID: geteuid()))
        add("broker.socket", socket, from: [BrokerSocketPath.variable, "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"])
        add("broker.state_directory", directory, from: ["STATE_DIRECTORY", "XDG_STATE_HOME"])
        if let address = try? configuration.usbmuxdAddress(environment) {
            add("devices.usbmuxd", address.description, from: [UsbmuxAddress.variable])
        }
        return overrides
    }

    /// Serves until SIGTERM or SIGINT.
    func run() async throws {
        await state.staticEndpoints.announce()
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map { .init(service: $0) },
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: logger
            )
        )
        let end: Result<Void, any Error>
        do { end = .success(try await group.run()) } catch { end = .failure(error) }
        do { try await state.accessStore.close() } catch {
            logger.error("the access state could not be saved at shutdown", metadata: ["error": "\(error)"])
        }
        withExtendedLifetime((socket, lock)) {}
        try end.get()
    }
}
