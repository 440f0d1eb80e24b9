package import Model
package import AccessControl
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
