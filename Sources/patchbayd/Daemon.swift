import API
import AccessControl
import Logging
import Registry
import ServiceLifecycle
import SystemIO
import Team
import Tunnels
import UnixSignals

/// The composition root: creates and connects every part of the broker.
struct Daemon: Sendable {
    /// Retained until the end, because it has the lock of the state directory.
    private let startup: Startup
    private let state: StateComponents
    /// Retained until the end, because deallocation removes the socket file.
    private let socket: APIUnixSocket
    private let services: [any Service]

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
        startup = try await Startup(loaded, options: options, environment: environment)
        let localTeam = LocalTeam(
            TeamFolder(in: startup.directory),
            settings: TeamHostSettings(
                configuration: startup.configuration.team,
                interfaces: startup.configuration.discovery.interfaceFilter
            ),
            connector: EtcdConnector(logger: startup.logger),
            logger: startup.logger
        )
        let team: CurrentTeam
        do { team = CurrentTeam(try await RunningTeam(localTeam, logger: startup.logger)) } catch {
            throw DaemonError.state(reason: "the team: \(error)")
        }
        state = try await StateComponents(startup, team: team)
        let sources = try await SourceComponents(startup, state: state, team: team)
        let servers = try await ServerComponents(
            startup,
            state: state,
            sources: sources,
            team: team,
            localTeam: localTeam
        )
        socket = servers.socket
        let reloader = ConfigurationReloader(
            store: startup.store,
            signals: startup.hangups,
            notifier: startup.notifier,
            logger: startup.logger,
            load: reload,
            targets: ReloadTargets(
                logLevel: startup.logLevel,
                accessStore: state.accessStore,
                staticEndpoints: state.staticEndpoints,
                approvals: servers.approvalService
            )
        )
        // In start order, dependencies first; stopped in reverse order.
        services =
            try [reloader, servers.approvalService] + state.services
            + sources.services(startup, state: state)
            + [Self.watchdog(startup, state: state, tunnels: sources.tunnels)] + servers.services
            + [StartupCodeReleaser()]
    }

    private static func watchdog(_ startup: Startup, state: StateComponents, tunnels: TunnelTable) -> WatchdogFeeder {
        WatchdogFeeder(
            notifier: startup.notifier,
            checks: [
                .init(name: "registry") { _ = await state.registry.revision },
                .init(name: "tunnels") { _ = await tunnels.list() },
                .init(name: "access control") { _ = await state.accessStore.wallClockLag },
                .init(name: "configuration") { _ = await startup.store.effective },
                .init(name: "descriptors") { try? await PollerClock().sleep(for: .milliseconds(1)) },
            ],
            logger: startup.logger
        )
    }

    /// Serves until SIGTERM or SIGINT.
    func run() async throws {
        await state.staticEndpoints.announce()
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map { .init(service: $0) },
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: startup.logger
            )
        )
        let end: Result<Void, any Error>
        do { end = .success(try await group.run()) } catch { end = .failure(error) }
        do { try await state.accessStore.close() } catch {
            startup.logger.error("the access state could not be saved at shutdown", metadata: ["error": "\(error)"])
        }
        withExtendedLifetime((socket, startup)) {}
        try end.get()
    }
}
