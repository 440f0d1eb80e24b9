import Model
import Registry
import Tunnels

/// Ends every use of an endpoint that a client may have open: calls, sessions, change streams, streams and connections
/// of tunnels.
///
/// Every loss of access to an endpoint ends here: its removal, the revocation of its approval, and a configuration
/// without it. So does the end of the grant that registered it. The uses of one grant end with the grant
/// (`GrantSessions`).
struct EndpointDisconnector: Sendable {
    private let registry: EndpointRegistry
    private let tunnels: TunnelTable
    private let disconnectCalls: @Sendable (EndpointID) async -> Void

    /// - Parameters:
    ///   - registry: The endpoints.
    ///   - tunnels: The tunnels and streams.
    ///   - disconnectCalls: Cancels the calls of an app, and ends its sessions.
    init(
        registry: EndpointRegistry,
        tunnels: TunnelTable,
        disconnectCalls: @escaping @Sendable (EndpointID) async -> Void
    ) {
        self.registry = registry
        self.tunnels = tunnels
        self.disconnectCalls = disconnectCalls
    }

    /// Ends every use of an endpoint. The caller has ended the access already, so that no new use begins. When this
    /// function returns, no more bytes are relayed, and no call is sent. The tunnels themselves stay.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint, as it was before.
    ///   - routes: The routes that may no longer be used. Calls end, whatever route they use.
    func disconnect(_ endpoint: Endpoint, over routes: RevokedRoutes) async {
        async let calls: Void = disconnectCalls(endpoint.id)
        var ids: Set<String> = []
        for tunnel in await tunnels.list() where await leads(tunnel.spec.target, to: endpoint) { ids.insert(tunnel.id) }
        await tunnels.closeConnections(of: ids, over: routes)
        for target in tunnels.streams.targets where await leads(target, to: endpoint) {
            await tunnels.streams.closeStreams(to: [target], over: routes)
        }
        await tunnels.refreshTargets()
        await calls
    }

    /// Returns whether a target is the endpoint, which may have had another ID when the tunnel was created.
    private func leads(_ target: TunnelTarget, to endpoint: Endpoint) async -> Bool {
        guard case .endpoint(let target) = target else { return false }
        if target == endpoint.id || endpoint.formerIDs?.contains(target) == true { return true }
        return (try? await registry.endpoint(target))?.id == endpoint.id
    }
}

extension Endpoint {
    /// The routes at configured addresses.
    var configuredRoutes: [Route] {
        routes.lazy.map(\.route).filter { $0.isNetwork && $0.machine == nil && $0.registration == nil }
    }
}
