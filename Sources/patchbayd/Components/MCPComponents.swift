import API
import AccessControl
import Agents
import Apps
import Devices
import FoundationEssentials
import Glibc
import Logging
import Model
import ServiceLifecycle
import SystemIO
import Team

/// Creates and connects the handlers of MCP requests and their dependencies.
struct MCPComponents: Sendable {
    let handlers: MCPHandlers
    /// The services in start order: dependencies first.
    let services: [any Service]

    init(
        _ startup: Startup,
        state: StateComponents,
        sources: SourceComponents,
        proxy teamProxy: TeamProxy,
        tunnelPolicy: GrantTunnelService
    ) async throws(StateError) {
        let (configuration, logger) = (startup.configuration, startup.logger)
        let (registry, dialer) = (state.registry, sources.dialer)
        let artifacts = ArtifactStore(in: "\(state.directory)/artifacts", logger: logger)
        let probe = Self.identityProbe(dialer)
        let images = ImageResizer()
        let activity = Self.activity(configuration.activity, state)
        let logs = PhoneLogService(
            configuration.devices.readLogs ? sources.discovery.adb.map { ADBLogSource($0) } : nil,
            users: sources.appUsers,
            accessStore: state.accessStore
        )
        let proxy = AppProxy(
            registry: registry,
            dialer: dialer,
            probe: probe,
            profiles: startup.profiles.profiles,
            authorizer: AccessStoreAuthorizer(state.accessStore),
            leases: state.leases,
            storage: FileAppCacheStorage(in: state.directory, logger: logger),
            sizeLimiter: ResultSizeLimiter(images: images, artifacts: artifacts),
            resourceLinks: ResourceLinkFilter(ownPort: configuration.api.port),
            logger: logger,
            activity: activity
        )
        let apps = TeamAppCaller(proxy, proxy: teamProxy)
        let broker = BrokerRequestHandler(
            list: state.endpoints,
            apps: apps,
            approvals: state.accessStore,
            tunnels: tunnelPolicy,
            leases: state.leases,
            leaseAuthority: state.leaseAuthority,
            devices: sources.devices,
            logs: logs,
            probe: { await sources.prober.probe($0) }
        )
        let keepAliveTimer = KeepAliveTimer()
        let sessions = try await SessionStore.load(in: state.directory, health: state.health, logger: logger)
        handlers = MCPHandlers(
            broker: broker,
            app: { AppRequestHandler($0, proxy: proxy) },
            all: configuration.mcp.all ? AggregateRequestHandler(proxy: proxy) : nil,
            apps: apps,
            sessions: sessions,
            keepAliveTimer: keepAliveTimer,
            artifacts: TeamArtifacts(artifacts, proxy: teamProxy),
            activity: activity.map { ActivityReader($0, images: images, artifacts: artifacts) },
            screens: ScreenService(proxy, images: images),
            logs: logs
        )
        let sameLaunches = SameLaunchVerifier(registry: registry, accessStore: state.accessStore, probe: probe)
        let launchEvents = LaunchFollower(
            registry: registry,
            watcher: sources.launchWatcher,
            scanner: sources.ports,
            prober: sources.prober,
            kindsWithSessions: Set(
                startup.profiles.profiles.filter { $0.authentication.requiresSecret }.map(\.kind)
            ),
            endLaunch: { await proxy.endLaunch(of: $0) }
        )
        services =
            [artifacts, sessions, proxy, broker, keepAliveTimer, sameLaunches, launchEvents]
            + (activity.map { [$0] } ?? [])
    }

    /// Creates the history of calls; nil if it is turned off.
    private static func activity(_ settings: Configuration.Activity, _ state: StateComponents) -> ActivityLog? {
        guard settings.calls > 0 else { return nil }
        let secrets = KnownSecrets(state.accessStore)
        return ActivityLog(
            limit: settings.calls,
            pictureLimit: settings.picturesMB * 1_000_000,
            registry: state.registry,
            secrets: { secrets.all }
        )
    }

    private static func identityProbe(_ dialer: any Dialer) -> IdentityProbe {
        let detector = ServiceDetector(dialer: dialer)
        return IdentityProbe(
            health: { await detector.health(of: $0) },
            launch: { route in
                await detector.launch(of: route.route, token: route.secret?.reveal()) { await route.leadsToLaunch() }
            }
        )
    }
}
