import Model
import Probes
import Registry
import ServiceLifecycle
import Tunnels

/// Tells the tunnels when their targets may have changed, and the phones' prober which ports apps use on the network.
struct EndpointFollower: Service {
    let registry: EndpointRegistry
    let tunnels: TunnelTable
    let ports: PhonePorts?

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
        let onNetwork = await registry.endpoints.filter { $0.sources.contains(.bonjour) }
        ports.learn(Set(onNetwork.flatMap(\.routes).map(\.port)))
    }
}
