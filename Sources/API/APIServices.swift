package import AccessControl
package import MCP
package import Model
package import Registry
package import Tunnels

/// Everything the doors open on to.
package struct APIServices: Sendable {
    package let registry: EndpointRegistry
    package let tunnels: TunnelTable
    package let pairing: AccessStore
    package let grantedTunnels: TunnelPolicy
    package let agents: MCPServers
    package let trust: ApprovalService
    /// Where strings for pairing lead to on this machine; nil while there is no TCP door.
    package let port: UInt16?
    package let devices: any DeviceDesk
    package let advertisements: any AdvertisementPublisher
    package let statics: any StaticEndpointDesk
    /// Asks an endpoint now whether it is there, and tells the registry.
    package let probe: @Sendable (Endpoint) async -> Void
    /// Which files of the state folder cannot be written, as sentences.
    package let storageProblems: @Sendable () async -> [String]
    package let status: @Sendable () async -> BrokerStatus

    package init(
        registry: EndpointRegistry,
        tunnels: TunnelTable,
        pairing: AccessStore,
        grantedTunnels: TunnelPolicy,
        agents: MCPServers,
        port: UInt16?,
        devices: any DeviceDesk,
        advertisements: any AdvertisementPublisher,
        statics: any StaticEndpointDesk,
        probe: @escaping @Sendable (Endpoint) async -> Void,
        storageProblems: @escaping @Sendable () async -> [String],
        status: @escaping @Sendable () async -> BrokerStatus
    ) {
        self.registry = registry
        self.tunnels = tunnels
        self.pairing = pairing
        self.port = port
        self.grantedTunnels = grantedTunnels
        self.agents = agents
        trust = ApprovalService(pairing: pairing, registry: registry, tunnels: tunnels)
        self.devices = devices
        self.advertisements = advertisements
        self.statics = statics
        self.probe = probe
        self.storageProblems = storageProblems
        self.status = status
    }
}

/// What the doors need of the phones on the cable.
package protocol DeviceDesk: Sendable {
    func devices() async -> [Device]
    /// The list as it stands, then again after every change; only the newest waits for a slow reader.
    func deviceLists() async -> AsyncStream<[Device]>
}

/// What the doors need of Bonjour publishing. Refusals are thrown as `Problem`.
package protocol AdvertisementPublisher: Sendable {
    func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement
    func advertisements() async -> [Advertisement]
    func update(_ id: String, txt: TXTRecord) async throws -> Advertisement
    func withdraw(_ id: String) async throws
    /// Tells each time that an advertisement may have changed or gone.
    func changes() async -> AsyncStream<Void>
}

/// What the doors need of endpoints that a person wrote down.
package protocol StaticEndpointDesk: Sendable {
    func add(_ endpoint: StaticEndpoint) async throws -> Endpoint
    /// Takes back what `add` put there; false when the endpoint is none of those.
    func remove(_ id: EndpointID) async throws -> Bool
}

/// What agents find behind the doors.
package struct MCPServers: Sendable {
    /// At `/mcp`.
    package let broker: any MCPServer
    /// At `/e/{id}/mcp`.
    package let app: @Sendable (EndpointID) -> any MCPServer
    /// At `/all/mcp`; nil where the configuration does not want it.
    package let all: (any MCPServer)?
    package let apps: any AppCaller
    package let sessions: SessionStore
    package let heartbeat: KeepAliveTimer
    package let artifacts: any ArtifactReader

    package init(
        broker: any MCPServer,
        app: @escaping @Sendable (EndpointID) -> any MCPServer,
        all: (any MCPServer)?,
        apps: any AppCaller,
        sessions: SessionStore,
        heartbeat: KeepAliveTimer,
        artifacts: any ArtifactReader
    ) {
        self.broker = broker
        self.app = app
        self.all = all
        self.apps = apps
        self.sessions = sessions
        self.heartbeat = heartbeat
        self.artifacts = artifacts
    }
}
