import API
import AccessControl
import Apps
import Devices
import Discovery
import FoundationEssentials
import Model
import Registry
import SystemIO
import Team

extension APIServices {
    /// Connects the route handlers of the API with the other components.
    init(
        _ startup: Startup,
        state: StateComponents,
        sources: SourceComponents,
        mcp: MCPHandlers,
        tunnelPolicy: GrantTunnelService,
        listeners: APIListeners,
        teamSetup: TeamSetup,
        team: CurrentTeam,
        usbmuxServer: UsbmuxServer?
    ) {
        let status = StatusReporter(
            state: state,
            sources: sources,
            usbmuxServer: usbmuxServer,
            teamSetup: teamSetup,
            remote: listeners.remote,
            api: listeners.tcp.status,
            allowAnyUser: startup.configuration.api.allowAnyUser
        )
        let devTools = DevToolsClient(dialer: sources.dialer)
        self.init(
            registry: state.registry,
            endpoints: state.endpoints,
            tunnels: sources.tunnels,
            accessStore: state.accessStore,
            tunnelPolicy: tunnelPolicy,
            mcp: mcp,
            leases: state.leases,
            leaseAuthority: state.leaseAuthority,
            leasePolicy: sources.leasePolicy,
            tcpPort: listeners.tcp.port,
            devices: sources.devices,
            deviceNotes: sources.deviceNotes,
            reverseTunnels: sources.reverseTunnels,
            advertisements: sources.discovery.bonjour,
            staticEndpoints: state.staticEndpoints,
            profiles: sources.profiles,
            configuration: { await startup.store.entries() },
            metrics: startup.metrics,
            remote: listeners.remote,
            grantSockets: listeners.grantSockets,
            owners: OwnerDirectory(listeners.owners),
            registrations: state.registrations,
            senderRefusal: { MachineAddresses.refusal(ofSender: $0) },
            brokers: sources.brokers,
            teamSetup: teamSetup,
            team: team,
            probe: { endpoint in
                await sources.prober.probe(endpoint)
                try await sources.openAgents.identify(endpoint)
                try await devTools.verify(endpoint)
            },
            webPages: { try await devTools.pages(of: $0) },
            storageProblems: { await state.health.problems() + [state.accessStore.storageProblem].compactMap { $0 } },
            oauth: startup.configuration.api.oauth,
            oauthClientMetadata: startup.configuration.api.oauthClientMetadata,
            status: { await status.status() }
        )
    }
}

/// Collects what `/v1/status` shows.
private struct StatusReporter {
    let state: StateComponents
    let sources: SourceComponents
    let usbmuxServer: UsbmuxServer?
    let teamSetup: TeamSetup
    let remote: RemoteListener
    let api: SourceStatus?
    let allowAnyUser: Bool
    let startedAt = Date()

    func status() async -> BrokerStatus {
        await BrokerStatus(
            of: state.endpoints,
            tunnels: sources.tunnels,
            devices: sources.devices,
            sources: sourceStatuses(),
            accessStore: state.accessStore,
            storage: await state.health.problems(),
            allowAnyUser: allowAnyUser,
            remote: await remote.status(),
            startedAt: startedAt
        )
    }

    private func sourceStatuses() async -> [SourceStatus] {
        let optional = [
            usbmuxServer?.status(), await teamSetup.source(), SourceStatus(of: await state.registry.refusals),
            SourceStatus(of: state.remoteEndpoints.refusals), api,
        ]
        return await sources.discovery.statuses() + [sources.debugLink?.status() ?? .debugLinkOff]
            + optional.compactMap { $0 }
    }
}
