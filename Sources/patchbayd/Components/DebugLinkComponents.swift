import Apps
import Discovery
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO

/// The state debugger: its listener, the tools of its apps, and its advertisement.
struct DebugLinkComponents: Sendable {
    let tools: DebugToolServer
    private let listener: DebugLinkListener
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
        let listener: DebugLinkListener
        do {
            listener = try DebugLinkListener(
                on: configuration.listen,
                forwardingTo: other.map { other -> DebuggerDial in { try await other.dial() } },
                isApproved: { await registry.isApproved($0) },
                logger: logger
            )
        } catch {
            throw .socket("debuglink.listen: \(error)")
        }
        tools = DebugToolServer(for: listener.apps)
        self.listener = listener
        forward = configuration.forward
        var services: [any Service] = [listener, tools, DebugAppLister(listener.apps, in: registry)]
        if let bonjour {
            let spec = AdvertisementSpec(
                name: configuration.name ?? ServiceAdvertiser.standardName,
                type: .debug,
                port: listener.address.port ?? 0,
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
            debugLinkAt: listener.address,
            apps: listener.apps.apps,
            refusals: listener.apps.refusals,
            forward: forward
        )
    }
}
