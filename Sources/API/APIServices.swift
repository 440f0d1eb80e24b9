package import AccessControl
package import Agents
package import Apps
package import Devices
package import Discovery
package import Model
package import Registry
package import Team
package import Tunnels

/// The dependencies of the route handlers.
package struct APIServices: Sendable {
    /// The endpoints of this host.
    package let registry: EndpointRegistry
    /// The endpoints that clients see.
    package let endpoints: any EndpointListing
    package let tunnels: TunnelTable
    package let accessStore: AccessStore
    package let tunnelPolicy: GrantTunnelService
    package let mcp: MCPHandlers
    /// The leases of this host.
    package let leases: LeaseService
    /// The leases that clients take and see.
    package let leaseAuthority: any LeaseAuthority
    let leasePolicy: LeasePolicy
    package let approvalService: ApprovalService
    let disconnector: EndpointDisconnector
    /// The TCP port of the API on loopback, for pairing strings; nil without a TCP listener.
    package let tcpPort: UInt16?
    package let devices: any DeviceListing
    let deviceNotes: DeviceNotes
    let reverseTunnels: ReverseTunnelTable
    /// Nil if Bonjour is turned off in the configuration.
    package let advertisements: (any AdvertisementPublisher)?
    package let staticEndpoints: StaticEndpoints
    package let profiles: ProfileService
    /// Lists the configuration that is in effect.
    package let configuration: @Sendable () async -> [ConfigurationEntry]
    package let metrics: PrometheusRegistry
    package let remote: RemoteListener
    package let grantSockets: GrantSockets
    let registrations: RegistrationService
    let owners: OwnerDirectory
    package let team: CurrentTeam
    package let brokers: NearbyBrokers
    package let teamSetup: TeamSetup
    /// Probes an endpoint now, and reports the result to the registry. Throws `DialError` or `DevToolsError`.
    package let probe: @Sendable (Endpoint) async throws -> Void
    /// Asks a DevTools server for its pages, over this route. Throws `DialError` or `DevToolsError`.
    package let webPages: @Sendable (Route) async throws -> DevToolsPages
    /// Returns one sentence for each state file that cannot be written.
    package let storageProblems: @Sendable () async -> [String]
    /// True if clients may ask for access over OAuth.
    let oauth: Bool
    /// The metadata documents of clients; nil if only registered clients may ask.
    let clientDocuments: ClientMetadataCache?
    package let status: @Sendable () async -> BrokerStatus
    let healthReader = HealthReader()
    let topics = TopicReader()

    package init(
        registry: EndpointRegistry,
        endpoints: any EndpointListing,
        tunnels: TunnelTable,
        accessStore: AccessStore,
        tunnelPolicy: GrantTunnelService,
        mcp: MCPHandlers,
        leases: LeaseService,
        leaseAuthority: any LeaseAuthority,
        leasePolicy: LeasePolicy? = nil,
        tcpPort: UInt16?,
        devices: any DeviceListing,
        deviceNotes: DeviceNotes,
        reverseTunnels: ReverseTunnelTable,
        advertisements: (any AdvertisementPublisher)?,
        staticEndpoints: StaticEndpoints,
        profiles: ProfileService,
        configuration: @escaping @Sendable () async -> [ConfigurationEntry],
        metrics: PrometheusRegistry,
        remote: RemoteListener,
        grantSockets: GrantSockets,
        owners: OwnerDirectory,
        registrations: RegistrationSource,
        senderRefusal: @escaping RegistrationService.AddressCheck,
        brokers: NearbyBrokers,
        teamSetup: TeamSetup,
        team: CurrentTeam = CurrentTeam(),
        probe: @escaping @Sendable (Endpoint) async throws -> Void,
        webPages: @escaping @Sendable (Route) async throws -> DevToolsPages,
        storageProblems: @escaping @Sendable () async -> [String],
        oauth: Bool = false,
        oauthClientMetadata: Bool = false,
        status: @escaping @Sendable () async -> BrokerStatus
    ) {
        self.registry = registry
        self.endpoints = endpoints
        self.tunnels = tunnels
        self.accessStore = accessStore
        self.tcpPort = tcpPort
        self.tunnelPolicy = tunnelPolicy
        self.mcp = mcp
        self.leases = leases
        self.leaseAuthority = leaseAuthority
        self.leasePolicy = leasePolicy ?? LeasePolicy(registry: registry, leases: leases)
        disconnector = EndpointDisconnector(registry: registry, tunnels: tunnels, disconnectCalls: mcp.apps.disconnect)
        approvalService = ApprovalService(accessStore: accessStore, registry: registry, disconnector: disconnector)
        self.devices = devices
        self.deviceNotes = deviceNotes
        self.reverseTunnels = reverseTunnels
        self.advertisements = advertisements
        self.staticEndpoints = staticEndpoints
        self.profiles = profiles
        self.configuration = configuration
        self.metrics = metrics
        self.remote = remote
        self.grantSockets = grantSockets
        self.owners = owners
        self.registrations = RegistrationService(
            source: registrations,
            accessStore: accessStore,
            registry: registry,
            approvalService: approvalService,
            disconnector: disconnector,
            addressRefusal: senderRefusal
        )
        self.brokers = brokers
        self.teamSetup = teamSetup
        self.team = team
        self.probe = probe
        self.webPages = webPages
        self.storageProblems = storageProblems
        self.oauth = oauth
        clientDocuments = oauthClientMetadata ? ClientMetadataCache(fetch: ClientMetadataFetcher().fetch) : nil
        self.status = status
    }
}

extension APIServices {
    /// Returns endpoints as a principal sees them, with what their list does not know: leases, and the
    /// deviations of servers.
    func views(of endpoints: [Endpoint], for principal: Principal) -> [Endpoint] {
        mcp.apps.describingDeviations(leases.withLeases(endpoints.map(principal.view), for: principal))
    }
}

/// The handlers of MCP requests, and the objects that they share.
package struct MCPHandlers: Sendable {
    /// The handler at `/mcp`.
    package let broker: any MCPRequestHandler
    /// Returns the handler of one app, at `/e/{id}/mcp`.
    package let app: @Sendable (EndpointID) -> any MCPRequestHandler
    /// The handler of all apps together, at `/all/mcp`; nil unless the configuration enables it.
    package let all: (any MCPRequestHandler)?
    package let apps: any AppCaller
    package let sessions: SessionStore
    package let keepAliveTimer: KeepAliveTimer
    package let artifacts: any ArtifactReader
    /// The history of calls; nil if it is turned off.
    package let activity: ActivityReader?
    package let screens: ScreenService
    package let logs: PhoneLogService

    package init(
        broker: any MCPRequestHandler,
        app: @escaping @Sendable (EndpointID) -> any MCPRequestHandler,
        all: (any MCPRequestHandler)?,
        apps: any AppCaller,
        sessions: SessionStore,
        keepAliveTimer: KeepAliveTimer,
        artifacts: any ArtifactReader,
        activity: ActivityReader?,
        screens: ScreenService,
        logs: PhoneLogService
    ) {
        self.broker = broker
        self.app = app
        self.all = all
        self.apps = apps
        self.sessions = sessions
        self.keepAliveTimer = keepAliveTimer
        self.artifacts = artifacts
        self.activity = activity
        self.screens = screens
        self.logs = logs
    }
}
