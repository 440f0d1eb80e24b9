import Model
import Probing
import Registry
import ServiceLifecycle
import Tunnels

/// Tells the tunnels when their targets may have changed, and the phones' prober which ports apps use on the network.
struct TunnelTargetRefresher: Service {
    let registry: EndpointRegistry
    let tunnels: TunnelTable
    let ports: DevicePortScanner?

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            // The registry lets a follower go that is too slow; the list it then reads anew has everything.
            while !Task.isCancelled {
                let (_, changes) = await registry.changes()
                await settle()
                for await change in changes {
                    // Several changes at once need one look.
                    guard await registry.revision == change.revision else { continue }
                    await settle()
                }
                try Task.checkCancellation()
            }
        }
    }

    private func settle() async {
        await tunnels.reconsider()
        guard let ports else { return }
        // Only from approved adverts: others would choose the ports that are tried on every phone.
        let announced = await registry.endpoints.flatMap(\.approvedRoutes).filter { $0.route.host != nil }
        ports.learn(Set(announced.map(\.port)))
    }
}
