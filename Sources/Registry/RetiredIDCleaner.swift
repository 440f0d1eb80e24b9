package import Model
import ServiceLifecycle

/// Frees the oldest IDs of removed endpoints when there are too many, except those that other parts name.
///
/// Any machine on the network can announce and withdraw apps, and so add retired IDs. It must not free an ID that
/// another app would then inherit together with tunnels or grants.
package struct RetiredIDCleaner: Service {
    private let registry: EndpointRegistry
    private let named: @Sendable () async -> Set<EndpointID>

    /// - Parameters:
    ///   - registry: The registry.
    ///   - named: Returns the IDs that tunnels, grants and others name.
    package init(_ registry: EndpointRegistry, except named: @escaping @Sendable () async -> Set<EndpointID>) {
        (self.registry, self.named) = (registry, named)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await registry.follow { _ in await registry.freeRetired(except: named) }
        }
    }
}
