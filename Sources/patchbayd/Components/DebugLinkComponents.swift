import Apps
import Discovery
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO

/// The state debugger: its server, the tools of its apps, and its advertisement.
struct DebugLinkComponents: Sendable {
    let tools: DebugToolServer
    private let server: DebugLinkServer
    /// The name of the other debugger; nil for none.
    private let forward: String?
    /// The services in start order: dependencies first.
    let services: [any Service]

    /// Opens the listener; nil if the state debugger is disabled in the configuration.
    ///
    /// - Throws: `DaemonError.socket`.
    init?(
        _ configuration: Configuration.DebugLink,
        registry: EndpointRegistry,
        dialer: any Dialer,
        bonjour: BonjourSource?,
        logger: Logger
    ) throws(DaemonError) {
        guard configuration.enabled else { return nil }
        let other = configuration.forward.map { name in
            DebuggerDialer(name: name, registry: registry, dialer: dialer)
        }
        let server: DebugLinkServer
        do {
            server = try DebugLinkServer(
                on: configuration.listen,
                forwardingTo: other.map { other -> DebuggerDial in { try await other.dial() } },
                isApproved: { await registry.isApproved($0) },
                logger: logger
            )
        } catch {
            throw .socket("debuglink.listen: \(error)")
        }
        tools = DebugToolServer(for: server.apps)
        self.server = server
        forward = configuration.forward
        var services: [any Service] = [server, tools, DebugAppLister(server.apps, in: registry)]
        if let bonjour {
            let spec = AdvertisementSpec(
                name: configuration.name ?? ServiceAdvertiser.standardName,
                type: .debug,
                port: server.address.port ?? 0,
                txt: DebuggerDialer.ownTXT
            )
            services.append(
                ServiceAdvertiser(
                    spec,
                    publisher: bonjour,
                    failure: "the state debugger is not advertised",
                    logger: logger
                )
            )
        } else {
            logger.warning("apps cannot find the state debugger, because discovery.enabled is false")
        }
        self.services = services
    }

    func status() async -> SourceStatus {
        await SourceStatus(
            debugLinkAt: server.address,
            apps: server.apps.apps,
            refusals: server.apps.refusals,
            forward: forward
        )
    }
}
