import API
import AccessControl
import FoundationEssentials
import Glibc
import MCP
import Logging
import Model
import Apps
import ServiceLifecycle
import SystemIO

/// Creates and connects the MCP servers and their dependencies.
struct MCPComponents: Sendable {
    let servers: MCPServers
    /// The services in start order: dependencies first.
    let services: [any Service]

    init(
        _ configuration: Configuration.MCP,
        ownPort: UInt16,
        state: StateComponents,
        sources: SourceComponents,
        proxy teamProxy: TeamProxy?,
        tunnelPolicy: GrantTunnelService,
        logger: Logger
    ) async throws(StateError) {
        let (registry, dialer) = (state.registry, sources.dialer)
        let artifacts = ArtifactStore(in: "\(state.directory)/artifacts", logger: logger)
        let detector = ServiceDetector(dialer: dialer)
        let probe = IdentityProbe(
            health: { await detector.health(of: $0) },
            launch: { route in
                await detector.launch(of: route.route, token: route.secret?.reveal()) { await route.leadsToLaunch() }
            }
        )
        let proxy = AppProxy(
            registry: registry,
            dialer: dialer,
            probe: probe,
            profiles: sources.profiles.catalog.profiles,
            authorizer: AccessStoreAuthorizer(state.accessStore),
            leases: state.leases,
            storage: FileAppCacheStorage(in: state.directory, logger: logger),
            sizeLimiter: ResultSizeLimiter(images: ImageResizer(), artifacts: artifacts),
            resourceLinks: ResourceLinkFilter(ownPort: ownPort),
            logger: logger
        )
        let apps: any AppCaller = teamProxy.map { TeamAppCaller(proxy, proxy: $0) } ?? proxy
        let broker = BrokerMCPServer(
            list: state.endpoints,
            apps: apps,
            approvals: state.accessStore,
            tunnels: tunnelPolicy,
            leases: state.leases,
            devices: DeviceProvider(
                devices: { await sources.devices.devices() },
                deviceLists: { await sources.devices.deviceLists() }
            ),
            probe: { await sources.prober.probe($0) }
        )
        let keepAliveTimer = KeepAliveTimer()
        let sessions = try await Self.sessions(in: state.directory, health: state.health, logger: logger)
        servers = MCPServers(
            broker: broker,
            app: { AppMCPServer($0, proxy: proxy) },
            all: configuration.all ? AggregateMCPServer(proxy: proxy) : nil,
            apps: apps,
            sessions: sessions,
            keepAliveTimer: keepAliveTimer,
            artifacts: teamProxy.map { TeamArtifacts(artifacts, proxy: $0) } ?? artifacts
        )
        let sameLaunches = SameLaunchVerifier(registry: registry, accessStore: state.accessStore, probe: probe)
        let launchEvents = LaunchEventForwarder(
            registry: registry,
            watcher: sources.launchWatcher,
            scanner: sources.ports,
            prober: sources.prober,
            kindsWithSessions: Set(
                sources.profiles.catalog.profiles.filter { $0.authentication.requiresSecret }.map(\.kind)
            ),
            endLaunch: { await proxy.endLaunch(of: $0) }
        )
        services = [artifacts, sessions, proxy, broker, keepAliveTimer, sameLaunches, launchEvents]
    }

    /// Loads the MCP sessions' subscriptions of earlier runs.
    private static func sessions(
        in directory: String,
        health: StateFileHealthTracker,
        logger: Logger
    ) async throws(StateError) -> SessionStore {
        let file = StateFile<[PersistedSubscriptions]>("subscriptions", in: directory, health: health, logger: logger)
        let save: @Sendable ([PersistedSubscriptions]) async -> Void = { subscriptions in
            do { try await file.write(subscriptions) } catch {
                // Clients subscribe again, or poll, after the next start.
                logger.warning(
                    "MCP subscriptions could not be saved; clients must subscribe again after a restart",
                    metadata: ["reason": "\(error)"]
                )
            }
        }
        let key = try await key(in: directory, health: health, logger: logger)
        return SessionStore(key: key, persisted: try await file.read() ?? [], persist: save)
    }

    /// Loads the signing key of MCP session IDs; creates it at the first start.
    private static func key(
        in directory: String,
        health: StateFileHealthTracker,
        logger: Logger
    ) async throws(StateError) -> SessionIDSigner {
        let file = StateFile<SessionIDSigner>("sessions", in: directory, health: health, logger: logger)
        if let key = try await file.read() { return key }
        let key = SessionIDSigner()
        do { try await file.write(key) } catch {
            // The current run is not affected.
            logger.warning(
                "the MCP session key could not be saved; clients must start new sessions after a restart",
                metadata: ["reason": "\(error)"]
            )
        }
        return key
    }
}

/// Stores the cached data of apps, one file per app in a directory of its own.
///
/// With a single file, each change of one app's tools would rewrite several megabytes.
struct FileAppCacheStorage: AppCacheStorage {
    private let path: String
    private let logger: Logger

    /// Uses the directory `apps` in the state directory, created with the first file.
    init(in directory: String, logger: Logger) {
        path = "\(directory)/apps"
        self.logger = logger
    }

    func load(_ id: EndpointID) async -> String? {
        guard access(path, F_OK) == 0 else { return nil }
        do { return try await file(of: id).read() } catch {
            logger.error(
                "an app's cache file cannot be read; the app is asked again",
                metadata: ["endpoint": "\(id)", "reason": "\(error)"]
            )
            return nil
        }
    }

    func save(_ text: String, of id: EndpointID) async {
        mkdir(path, 0o700)
        do {
            try await file(of: id).write(text)
        } catch {
            logger.error(
                "an app's cache file could not be written",
                metadata: ["endpoint": "\(id)", "reason": "\(error)"]
            )
        }
    }

    func delete(_ id: EndpointID) async { unlink("\(path)/\(id).json") }

    private func file(of id: EndpointID) -> StateFile<String> { StateFile(id.text, in: path, logger: logger) }
}
