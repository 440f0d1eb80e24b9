import AccessControl
import Model
import Registry
import ServiceLifecycle
import Tunnels

/// Frees the oldest IDs of removed endpoints when there are too many, except those that a tunnel or access control
/// names.
///
/// Any machine on the network can announce and withdraw apps, and so add retired IDs. It must not free an ID that
/// another app would then inherit together with tunnels or grants.
struct RetiredIDCleaner: Service {
    let registry: EndpointRegistry
    let accessStore: AccessStore
    let tunnels: TunnelTable

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            // The registry ends the stream of a slow subscriber.
            while !Task.isCancelled {
                let changes = await registry.changes().changes
                await cleanUp()
                for await _ in changes { await cleanUp() }
                try Task.checkCancellation()
            }
        }
    }

    /// Frees the IDs above the limit.
    func cleanUp() async {
        await registry.freeRetired {
            let targets = await tunnels.list().compactMap { tunnel -> EndpointID? in
                if case .endpoint(let id) = tunnel.spec.target { id } else { nil }
            }
            return await accessStore.namedEndpoints.union(targets)
        }
    }
}
