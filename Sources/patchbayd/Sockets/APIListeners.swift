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
                    names: configuration.api.remoteNames,
                    files: CertificateFiles(configuration.api.remoteCertificate, configuration.api.remoteKey),
                    report: { logger.error("your certificate is of no use", metadata: ["reason": "\($0)"]) },
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

    /// Returns a function that creates the team listener.
    func teamListener(_ services: APIServices, _ startup: Startup) -> @Sendable (RunningTeam) -> any Service {
        { [self] team in
            team.listener(at: startup.configuration.team.listen, logger: startup.logger) {
                server($0, .team(port: $1), services, startup, security: $2)
            }
        }
    }

    private func server(
        _ listener: consuming Descriptor,
        _ transport: APIServer.Transport,
        _ services: APIServices,
        _ startup: Startup,
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
            logger: startup.logger,
            onOpen: onOpen
        )
    }

    /// Returns the servers of the other listeners in start order.
    func services(
        _ services: APIServices,
        _ startup: Startup,
        state: StateComponents,
        sources: SourceComponents
    ) throws -> [any Service] {
        let (notifier, logger) = (startup.notifier, startup.logger)
        let tcpServers = tcp.descriptors.map {
            server(Descriptor(owning: $0.number), .tcp(port: $0.port), services, startup)
        }
        let advertiser = sources.discovery.bonjour.map { bonjour in
            RemoteAdvertiser(remote, invites: state.accessStore.invites, publisher: bonjour, logger: logger)
        }
        // The last to open, because it reports to systemd that the broker is ready.
        let unixServer = server(try unix.descriptor(), .unix, services, startup) {
            notifier.ready("serving on \(unix.name)")
            logger.info(
                "the API is open",
                metadata: ["socket": "\(unix.name)", "tcp": "\(tcp.port.map(String.init) ?? "none")"]
            )
        }
        return tcpServers + [
            remote.service(logger: logger) { server($0, .remote(port: $1), services, startup, security: $2) },
            GrantSocketService(grantSockets) { server($0, .socketGrant($1), services, startup) },
        ] + [advertiser].compactMap(\.self) + [
            unixServer, SystemdStopNotifier(notifier: notifier, logger: logger),
        ]
    }
}
