import API
import Apps
import CoreMetrics
import Glibc
import Logging
import Model
import SystemIO
import Tunnels
import UnixSignals

/// The inputs of the broker's components: configuration, environment, log, metrics and state directory.
struct Startup: Sendable {
    /// The configuration, with the options of the command line.
    let configuration: Configuration
    let profiles: ProfileCatalog
    let environment: [String: String]
    /// The configuration in effect, for the API and the reload.
    let store: ConfigurationStore
    let logLevel: SharedLogLevel
    /// The operator's log.
    let logger: Logger
    let metrics = PrometheusRegistry()
    let notifier: SystemdNotifier
    /// Yields each SIGHUP.
    let hangups: UnixSignalsSequence
    /// The state directory.
    let directory: String
    /// Retained until the end, so that no other broker writes to the state directory.
    let lock: StateDirectoryLock
    let descriptors: FileDescriptorBudget
    /// The connections to the API.
    let clients = ConnectionLimiter()

    /// Opens the log and the state directory.
    ///
    /// - Parameters:
    ///   - loaded: The valid configuration.
    ///   - options: The options of the command line that replace keys, in the names of the keys.
    ///   - environment: The environment.
    /// - Throws: `DaemonError`.
    init(_ loaded: LoadedConfiguration, options: [String: String], environment: [String: String]) async throws {
        let configuration = loaded.configuration.replacing(options)
        let level = SharedLogLevel(configuration.broker.logLevel)
        let logger = Logger(label: "patchbayd") { _ in BrokerLogHandler(environment: environment, level: level) }
        // Before the parts that create metrics.
        MetricsSystem.bootstrap(metrics)
        notifier = SystemdNotifier(environment: environment)
        // Installed first: SIGHUP terminates a process without a handler.
        hangups = await UnixSignalsSequence(trapping: .sighup)
        // These need descriptors and are created while some are available.
        _ = (Poller.shared, ThreadExecutor.files)
        descriptors = FileDescriptorBudget.make(wanted: configuration.tunnels.maxConnections, logger: logger)
        directory = try StateDirectory.prepare(
            explicit: configuration.broker.stateDirectory,
            environment: environment
        )
        lock = try StateDirectoryLock(on: directory)
        (self.configuration, profiles, self.environment) = (configuration, loaded.profiles, environment)
        (logLevel, self.logger) = (level, logger)
        store = ConfigurationStore(
            loaded,
            overrides: ConfigurationStore.Override.all(
                of: configuration,
                options: options,
                directory: directory,
                environment: environment
            )
        )
        logger.info(
            "patchbayd starts",
            metadata: [
                "version": "\(Version.text)", "pid": "\(getpid())", "state": "\(directory)",
                "configuration": "\(configuration.file ?? "none, every key is at its default")",
            ]
        )
        if profiles.entries.isEmpty {
            logger.warning("no profiles are installed; debug servers such as app-debug are listed as tcp")
        }
        ServiceFolders.openTunnels(environment: environment)
    }

    /// The path of the control socket.
    var socketPath: String {
        let (explicit, user) = (configuration.broker.socket, geteuid())
        return AbsolutePath.of(BrokerSocketPath.listen(explicit: explicit, environment: environment, userID: user))
    }

    /// The rules for unix sockets.
    var sockets: UnixSocketReachability { ServiceFolders.sockets(environment: environment) }
}
