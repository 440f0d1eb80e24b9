import API
import AccessControl
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
    /// - Throws: `ConfigurationError`, `DaemonError`.
    init(
        configuration: Configuration,
        profiles: ProfileCatalog,
        socket: String?,
        stateDirectory: String?,
        environment: [String: String]
    ) async throws {
        let logger = Self.logger(at: configuration.broker.logLevel)
        self.logger = logger
        let notifier = SystemdNotifier(environment: environment)
        let hangups = await HangupSignalHandler(logger: logger)
        // These need descriptors and are created while some are available.
        _ = (Poller.shared, ThreadExecutor.files)
        let descriptors = FileDescriptorBudget.make(wanted: configuration.tunnels.maxConnections, logger: logger)
        let directory = try StateDirectory.prepare(
            explicit: stateDirectory ?? configuration.broker.stateDirectory,
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

        let state = try await StateComponents(
            in: directory,
            configuration: configuration,
            profiles: profiles.profiles,
            environment: environment,
            logger: logger
        )
        self.state = state
        let limiter = ConnectionLimiter()
        if profiles.entries.isEmpty {
            logger.warning("no profiles are installed; debug servers such as app-debug are listed as tcp")
        }
        let sources = try await SourceComponents(
            configuration,
            profiles: profiles,
            environment: environment,
            state: state,
            limits: TunnelLimits(connections: descriptors.connections),
            clients: limiter,
            logger: logger
        )
        let servers = try await ServerComponents(
            configuration,
            path: socket,
            environment: environment,
            state: state,
            sources: sources,
            limiter: limiter,
            notifier: notifier,
            logger: logger
        )
        self.socket = servers.socket
        let watchdog = WatchdogFeeder(notifier: notifier) {
            _ = await state.registry.revision
            _ = await sources.tunnels.list()
        }
        // In start order, dependencies first; stopped in reverse order.
        services =
            [hangups, servers.approvalService] + state.services + sources.services + [watchdog] + servers.services
    }

    private static func logger(at level: String) -> Logger {
        var logger = Logger(label: "patchbayd") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = Logger.Level(rawValue: level) ?? .info
        return logger
    }

    /// Serves until SIGTERM or SIGINT; SIGHUP is ignored.
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
