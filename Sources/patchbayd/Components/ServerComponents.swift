import API
import AccessControl
import Devices
import Discovery
import FoundationEssentials
import Glibc
import Logging
import Model
import Apps
import Registry
import ServiceLifecycle
import SystemIO
import Team
import Transport
import Tunnels

/// The servers: the API on its unix socket and TCP sockets, MCP, and the usbmuxd-compatible server.
struct ServerComponents: Sendable {
    /// Retained until the end, because deallocation removes the socket file.
    let socket: APIUnixSocket
    let approvalService: ApprovalService
    /// The services in start order: dependencies first.
    let services: [any Service]

    /// Opens the sockets.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - configurationStore: The configuration in effect, for the API.
    ///   - metrics: The metrics, for the API.
    ///   - environment: The environment, for the default paths and the sockets that systemd passed.
    ///   - state: The registry and access control.
    ///   - sources: The sources and the tunnels.
    ///   - team: The team of this host; nil without one.
    ///   - teamSetup: The commands of the team.
    ///   - limiter: Limits the connections to the API.
    ///   - notifier: Tells systemd that the API is open.
    ///   - logger: The operator's log.
    /// - Throws: `ConfigurationError.badAddress`, `DaemonError`.
    init(
        _ configuration: Configuration,
        configurationStore: ConfigurationStore,
        metrics: PrometheusRegistry,
        environment: [String: String],
        state: StateComponents,
        sources: SourceComponents,
        team: TeamComponents?,
        teamSetup: TeamSetup,
        limiter: ConnectionLimiter,
        notifier: SystemdNotifier,
        logger: Logger
    ) async throws {
        let usbmuxServer = try await Self.makeUsbmuxServer(
            configuration,
            environment: environment,
            sources: sources,
            policy: sources.leasePolicy,
            logger: logger
        )
        let activation = try SocketActivation(environment: environment, logger: logger)
        let tcpSockets = APITCPSockets(configuration.api, activation: activation, logger: logger)
        let tunnelPolicy = GrantTunnelService(
            endpoints: state.endpoints,
            table: sources.tunnels,
            accessStore: state.accessStore,
            leasePolicy: sources.leasePolicy
        )
        let mcp = try await DaemonError.reading { () async throws(StateError) in
            try await MCPComponents(
                configuration.mcp,
                ownPort: configuration.api.port,
                state: state,
                sources: sources,
                proxy: team?.proxy,
                tunnelPolicy: tunnelPolicy,
                logger: logger
            )
        }
        let remote = try await Self.makeRemoteListener(configuration, state: state, limiter: limiter, logger: logger)
        let owners = OwnerPolicy.current()
        let grantSockets = GrantSockets(
            state.accessStore,
            places: GrantSocketPlaces(environment: environment, owners: owners),
            logger: logger
        )
        let apiServices = Self.makeAPIServices(
            configuration,
            state: state,
            sources: sources,
            mcp: mcp.servers,
            configurationStore: configurationStore,
            metrics: metrics,
            tunnelPolicy: tunnelPolicy,
            tcpPort: tcpSockets.port,
            remote: remote,
            grantSockets: grantSockets,
            teamSetup: teamSetup,
            team: team,
            usbmuxServer: usbmuxServer
        )
        approvalService = apiServices.approvalService
        let socket = try APIUnixSocket(
            at: AbsolutePath.of(
                BrokerSocketPath.listen(
                    explicit: configuration.broker.socket,
                    environment: environment,
                    userID: geteuid()
                )
            ),
            activation: activation,
            owners: owners,
            allowAnyUser: configuration.api.allowAnyUser
        )
        self.socket = socket
        @Sendable func makeServer(
            _ listener: consuming Descriptor,
            _ transport: APIServer.Transport,
            security: ListenerSecurity? = nil,
            onOpen: @escaping @Sendable () async -> Void
        ) -> APIServer {
            APIServer(
                owning: listener,
                transport: transport,
                services: apiServices,
                owners: owners,
                origins: Set(configuration.api.allowedOrigins),
                limiter: limiter,
                security: security,
                logger: logger,
                onOpen: onOpen
            )
        }
        let tcpServers = tcpSockets.descriptors.map { socket in
            makeServer(Descriptor(owning: socket.number), .tcp(port: socket.port)) {}
        }
        let unixServer = makeServer(try socket.descriptor(), .unix) {
            notifier.ready("serving on \(socket.name)")
            logger.info(
                "the API is open",
                metadata: ["socket": "\(socket.name)", "tcp": "\(tcpSockets.port.map(String.init) ?? "none")"]
            )
        }
        let remoteService = remote.service(logger: logger) { makeServer($0, .remote(port: $1), security: $2) {} }
        let advertiser = RemoteAdvertiser(
            listener: remote,
            invites: state.accessStore.invites,
            bonjour: sources.discovery.bonjour,
            name: DebugLinkAdvertiser.standardName,
            logger: logger
        )
        let grantSocketService = GrantSocketService(grantSockets) { makeServer($0, .socketGrant($1)) {} }
        let teamListener = team?.listener(at: configuration.team.listen) {
            makeServer($0, .team(port: $1), security: $2) {}
        }
        var services = mcp.services + tcpServers + [remoteService, advertiser, grantSocketService]
        if let teamListener { services.append(teamListener) }
        services += [unixServer, SystemdStopNotifier(notifier: notifier, logger: logger)]
        // Started after the tunnels and stopped before them, because the tunnels own the relay.
        if let usbmuxServer { services.append(usbmuxServer) }
        self.services = services
    }

    /// Connects the route handlers of the API with the other parts.
    private static func makeAPIServices(
        _ configuration: Configuration,
        state: StateComponents,
        sources: SourceComponents,
        mcp: MCPServers,
        configurationStore: ConfigurationStore,
        metrics: PrometheusRegistry,
        tunnelPolicy: GrantTunnelService,
        tcpPort: UInt16?,
        remote: RemoteListener,
        grantSockets: GrantSockets,
        teamSetup: TeamSetup,
        team: TeamComponents?,
        usbmuxServer: UsbmuxServer?
    ) -> APIServices {
        let start = Date()
        return APIServices(
            registry: state.registry,
            endpoints: state.endpoints,
            tunnels: sources.tunnels,
            accessStore: state.accessStore,
            tunnelPolicy: tunnelPolicy,
            mcp: mcp,
            leases: state.leases,
            leasePolicy: sources.leasePolicy,
            tcpPort: tcpPort,
            devices: sources.devices,
            advertisements: BonjourAdvertisementPublisher(source: sources.discovery.bonjour),
            staticEndpoints: state.staticEndpoints,
            profiles: sources.profiles,
            configuration: configurationStore,
            metrics: metrics,
            remote: remote,
            grantSockets: grantSockets,
            registrations: state.registrations,
            senderRefusal: { HostAddresses.refusal(ofSender: $0) },
            brokers: sources.brokers,
            teamControl: teamSetup,
            team: team?.apiServices,
            probe: { endpoint in
                await sources.prober.probe(endpoint)
                do { try await sources.openAgents.identify(endpoint) } catch let failure as DialError {
                    throw Problem(.unavailable, failure.description)
                }
            },
            storageProblems: { await state.health.problems() + [state.accessStore.storageProblem].compactMap { $0 } },
            status: {
                await BrokerStatus(
                    of: state.endpoints,
                    tunnels: sources.tunnels,
                    devices: sources.devices,
                    sources: sources.discovery.statuses() + [sources.debugLink?.status() ?? .debugLinkOff]
                        + (usbmuxServer.map { [$0.status()] } ?? [])
                        + [
                            await teamSetup.source(), SourceStatus(of: await state.registry.refusals),
                            state.remoteEndpoints.flatMap { SourceStatus(of: $0.refusals) },
                        ].compactMap { $0 },
                    accessStore: state.accessStore,
                    storage: await state.health.problems(),
                    allowAnyUser: configuration.api.allowAnyUser,
                    remote: await remote.status(),
                    startedAt: start
                )
            }
        )
    }

    /// Creates the remote listener, which may be off.
    private static func makeRemoteListener(
        _ configuration: Configuration,
        state: StateComponents,
        limiter: ConnectionLimiter,
        logger: Logger
    ) async throws -> RemoteListener {
        let interfaces = InterfaceFilter(
            allowed: configuration.discovery.interfaces,
            denied: configuration.discovery.denyInterfaces
        )
        do {
            return try await RemoteListener(
                RemoteListener.Settings(
                    configured: configuration.api.remote,
                    configurationFile: configuration.file,
                    reachable: { HostAddresses.reachable(on: interfaces) }
                ),
                identityFile: TLSIdentityFile("\(state.directory)/remote.pem"),
                file: StateFile("remote", in: state.directory, health: state.health, logger: logger),
                limiter: limiter
            )
        } catch { throw DaemonError.state(reason: "\(error)") }
    }

    /// Creates the usbmuxd-compatible server if the configuration enables it.
    private static func makeUsbmuxServer(
        _ configuration: Configuration,
        environment: [String: String],
        sources: SourceComponents,
        policy: LeasePolicy,
        logger: Logger
    ) async throws -> UsbmuxServer? {
        guard let path = try configuration.usbmuxServerPath(environment) else { return nil }
        if let folder = ServiceFolders.sockets(environment: environment).privateFolder(of: path) {
            throw DaemonError.path(
                "devices.serve_usbmuxd is \(path), but the service has a \(folder) of its own, in which no other program "
                    + "finds the socket; use unix:/run/patchbay/tunnels/usbmuxd"
            )
        }
        // The same users as those of the control socket, where the broker may give the file to their group.
        let group = OwnerPolicy.current().group.flatMap { geteuid() == 0 || getegid() == $0 ? $0 : nil }
        return UsbmuxServer(
            on: try APIUnixSocket.make(
                at: path,
                or: "devices.serve_usbmuxd",
                access: group.map { UnixSocketAccess(mode: 0o660, group: $0) } ?? .private
            ),
            devices: await sources.attachedDevices.deviceLists(),
            dialer: sources.dialer,
            usbmuxd: NativeUsbmuxClient(address: try configuration.usbmuxdAddress(environment)),
            relay: sources.tunnels.relay,
            policy: policy,
            logger: logger
        )
    }
}

extension PrometheusRegistry: MetricsProvider {}
