import API
import AccessControl
import FoundationEssentials
import Glibc
import Images
import Logging
import MCP
import Model
import Probing
import Registry
import ServiceLifecycle
import SystemIO
import Tunnels

/// Everything behind the agents' doors, put together.
struct MCPComponents: Sendable {
    let agents: MCPServers
    /// In the order of the data's way.
    let services: [any Service]

    init(
        _ configuration: Configuration.MCP,
        in directory: String,
        health: StateHealth,
        registry: EndpointRegistry,
        tunnels: TunnelTable,
        granted: TunnelPolicy,
        pairing: AccessStore,
        phones: AttachedDevices,
        probe: @escaping @Sendable (Endpoint) async -> Void,
        dialer: any Dialer,
        logger: Logger
    ) async throws(StateError) {
        let artifacts = ArtifactStore(in: "\(directory)/artifacts", logger: logger)
        let trimmer = ResultSizeLimiter(images: ImageResizer(), artifacts: artifacts)
        let identifier = ServiceDetector(dialer: dialer)
        let desk = AppProxy(
            registry: registry,
            dialer: dialer,
            probe: IdentityProbe(
                health: { await identifier.health(of: $0) },
                launch: { await identifier.launch(of: $0, token: $1?.reveal()) }
            ),
            trust: PairingTrust(pairing),
            memory: FileAppCacheStorage(in: directory, logger: logger),
            trim: { await trimmer.trim($0, maxPixels: $1, for: $2) },
            logger: logger
        )
        let broker = BrokerMCPServer(
            registry: registry,
            apps: desk,
            trust: pairing,
            tunnels: AgentTunnels(registry: registry, table: tunnels, granted: granted, pairing: pairing),
            phones: Phones(list: { await phones.devices() }, lists: { await phones.deviceLists() }),
            probe: probe
        )
        let heartbeat = KeepAliveTimer()
        let sessions = try await Self.sessions(in: directory, health, logger)
        agents = MCPServers(
            broker: broker,
            app: { AppMCPServer($0, desk: desk) },
            all: configuration.all ? AggregateMCPServer(desk: desk) : nil,
            apps: desk,
            sessions: sessions,
            heartbeat: heartbeat,
            artifacts: artifacts
        )
        services = [artifacts, sessions, desk, broker, heartbeat]
    }

    /// What agents' clients agreed on and subscribed to, also in earlier runs.
    private static func sessions(
        in directory: String,
        _ health: StateHealth,
        _ logger: Logger
    ) async throws(StateError) -> SessionStore {
        let file = StateFile<[PersistedSubscriptions]>("subscriptions", in: directory, health: health, logger: logger)
        let keep: @Sendable ([PersistedSubscriptions]) async -> Void = { kept in
            do { try await file.write(kept) } catch {
                // Clients subscribe anew, or look again, after the next start.
                logger.warning("what agents subscribed to is not kept", metadata: ["reason": "\(error)"])
            }
        }
        let key = try await key(in: directory, health, logger)
        return SessionStore(key: key, kept: try await file.read() ?? [], keep: keep)
    }

    /// The key that session ids are signed with; made at the first start.
    private static func key(
        in directory: String,
        _ health: StateHealth,
        _ logger: Logger
    ) async throws(StateError) -> SessionIDSigner {
        let file = StateFile<SessionIDSigner>("sessions", in: directory, health: health, logger: logger)
        if let key = try await file.read() { return key }
        let key = SessionIDSigner()
        do { try await file.write(key) } catch {
            // It works all the same; clients begin new sessions after the next start.
            logger.warning("the key of agents' sessions is not kept", metadata: ["reason": "\(error)"])
        }
        return key
    }
}

/// Keeps what apps said while they were there: a file for each, in a folder of their own.
///
/// One file for all would be written anew, megabytes of it, whenever one app lists another tool.
struct FileAppCacheStorage: AppCacheStorage {
    private let path: String
    private let logger: Logger

    /// Makes its folder in the state directory when there is something to keep.
    init(in directory: String, logger: Logger) {
        path = "\(directory)/apps"
        self.logger = logger
    }

    func recall(_ id: EndpointID) async -> String? {
        guard access(path, F_OK) == 0 else { return nil }
        do { return try await file(of: id).read() } catch {
            logger.error("what an app said cannot be read", metadata: ["endpoint": "\(id)", "reason": "\(error)"])
            return nil
        }
    }

    func keep(_ text: String, of id: EndpointID) async {
        mkdir(path, 0o700)
        do {
            try await file(of: id).write(text)
        } catch {
            logger.error("what an app said is not kept", metadata: ["endpoint": "\(id)", "reason": "\(error)"])
        }
    }

    func forget(_ id: EndpointID) async { unlink("\(path)/\(id).json") }

    private func file(of id: EndpointID) -> StateFile<String> { StateFile(id.text, in: path, logger: logger) }
}
