import API
import AccessControl
import Discovery
import Logging
import Model
import ServiceLifecycle
import SystemIO
import Team
import Transport

/// The sockets of the API: the unix socket, TCP sockets, those of grants, and the listener for remote clients.
struct APIListeners: Sendable {
    let unix: APIUnixSocket
    let tcp: APITCPSockets
    let grantSockets: GrantSockets
    let remote: RemoteListener
    let owners = OwnerPolicy.current()

    /// Opens the unix socket and the TCP sockets, or takes those that systemd passes.
    ///
    /// - Throws: `DaemonError`.
    init(_ startup: Startup, state: StateComponents) async throws {
        let (configuration, logger) = (startup.configuration, startup.logger)
        let activation = try SocketActivation(environment: startup.environment, logger: logger)
        tcp = APITCPSockets(configuration.api, activation: activation, logger: logger)
        grantSockets = GrantSockets(
            state.accessStore,
            places: GrantSocketPlaces(environment: startup.environment, owners: owners),
            logger: logger
        )
        let interfaces = configuration.discovery.interfaceFilter
        do {
            remote = try await RemoteListener(
                RemoteListener.Settings(
                    configured: configuration.api.remote,
                    configurationFile: configuration.file,
                    reachable: { MachineAddresses.reachable(on: interfaces) }
                ),
                identityFile: TLSIdentityFile("\(startup.directory)/remote.pem"),
                file: StateFile("remote", in: startup.directory, health: state.health, logger: logger),
                limiter: startup.clients
            )
        } catch { throw DaemonError.state(reason: "\(error)") }
        unix = try APIUnixSocket(
            at: startup.socketPath,
            activation: activation,
            owners: owners,
            allowAnyUser: configuration.api.allowAnyUser
        )
    }

    /// Returns the servers of all listeners in start order.
    func services(
        _ services: APIServices,
        _ startup: Startup,
        state: StateComponents,
        sources: SourceComponents,
        team: RunningTeam?
    ) throws -> [any Service] {
        let (notifier, logger) = (startup.notifier, startup.logger)
        @Sendable func makeServer(
            _ listener: consuming Descriptor,
            _ transport: APIServer.Transport,
            security: ListenerSecurity? = nil,
            onOpen: @escaping @Sendable () async -> Void = {}
        ) -> APIServer {
            APIServer(
                owning: listener,
                transport: transport,
                services: services,
                owners: owners,
                origins: Set(startup.configuration.api.allowedOrigins),
                limiter: startup.clients,
                security: security,
                logger: logger,
                onOpen: onOpen
            )
        }
        let tcpServers = tcp.descriptors.map { makeServer(Descriptor(owning: $0.number), .tcp(port: $0.port)) }
        let advertiser = sources.discovery.bonjour.map { bonjour in
            RemoteAdvertiser(
                remote,
                invites: state.accessStore.invites,
                publisher: bonjour,
                name: ServiceAdvertiser.standardName,
                logger: logger
            )
        }
        let teamListener = team?.listener(at: startup.configuration.team.listen, logger: logger) {
            makeServer($0, .team(port: $1), security: $2)
        }
        // The last to open, because it reports to systemd that the broker is ready.
        let unixServer = makeServer(try unix.descriptor(), .unix) {
            notifier.ready("serving on \(unix.name)")
            logger.info(
                "the API is open",
                metadata: ["socket": "\(unix.name)", "tcp": "\(tcp.port.map(String.init) ?? "none")"]
            )
        }
        return tcpServers + [
            remote.service(logger: logger) { makeServer($0, .remote(port: $1), security: $2) },
            GrantSocketService(grantSockets) { makeServer($0, .socketGrant($1)) },
        ] + ([advertiser, teamListener] as [(any Service)?]).compactMap(\.self) + [
            unixServer, SystemdStopNotifier(notifier: notifier, logger: logger),
        ]
    }
}
