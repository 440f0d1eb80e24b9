import API
import Devices
import Glibc
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Team
import Tunnels

/// The servers: the API on its unix socket and TCP sockets, MCP, and the usbmuxd-compatible server.
struct ServerComponents: Sendable {
    /// Retained until the end, because deallocation removes the socket file.
    let socket: APIUnixSocket
    let approvalService: ApprovalService
    /// The services in start order: dependencies first.
    let services: [any Service]

    /// Opens the sockets. `localTeam` is for the commands of the team.
    ///
    /// - Throws: `ConfigurationError.badAddress`, `DaemonError`.
    init(
        _ startup: Startup,
        state: StateComponents,
        sources: SourceComponents,
        team: CurrentTeam,
        localTeam: LocalTeam
    ) async throws {
        let usbmuxServer = try await Self.makeUsbmuxServer(startup, sources: sources)
        let listeners = try await APIListeners(startup, state: state)
        let tunnelPolicy = GrantTunnelService(
            endpoints: state.endpoints,
            table: sources.tunnels,
            accessStore: state.accessStore,
            leasePolicy: sources.leasePolicy
        )
        let mcp = try await DaemonError.reading { () async throws(StateError) in
            try await MCPComponents(
                startup,
                state: state,
                sources: sources,
                proxy: team.proxy,
                tunnelPolicy: tunnelPolicy
            )
        }
        let api = APIServices(
            startup,
            state: state,
            sources: sources,
            mcp: mcp.handlers,
            tunnelPolicy: tunnelPolicy,
            listeners: listeners,
            teamSetup: TeamSetup(localTeam, team),
            team: team,
            usbmuxServer: usbmuxServer
        )
        approvalService = api.approvalService
        socket = listeners.unix
        let teamParts = TeamService.Parts(
            registry: state.registry,
            endpoints: state.remoteEndpoints,
            attachedDevices: sources.attachedDevices,
            devices: sources.devices,
            leases: state.leases,
            tunnels: sources.tunnels
        )
        services =
            [TeamService(team, localTeam, teamParts, listener: listeners.teamListener(api, startup))] + mcp.services
            + (try listeners.services(api, startup, state: state, sources: sources))
            // Started after the tunnels and stopped before them, because the tunnels own the relay.
            + [usbmuxServer].compactMap { $0 }
    }

    /// Creates the usbmuxd-compatible server if the configuration enables it.
    private static func makeUsbmuxServer(_ startup: Startup, sources: SourceComponents) async throws -> UsbmuxServer? {
        let configuration = startup.configuration
        guard let path = try configuration.usbmuxServerPath(startup.environment) else { return nil }
        if let folder = startup.sockets.privateFolder(of: path) {
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
            usbmuxd: NativeUsbmuxClient(address: try configuration.usbmuxdAddress(startup.environment)),
            relay: sources.tunnels.relay,
            policy: sources.leasePolicy,
            logger: startup.logger
        )
    }
}
