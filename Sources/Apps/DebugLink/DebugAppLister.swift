import Model
package import Registry
import ServiceLifecycle

/// Lists the apps that connected to the state debugger as endpoints.
package struct DebugAppLister: Service {
    private let apps: DebugAppTable
    private let registry: EndpointRegistry

    package init(_ apps: DebugAppTable, in registry: EndpointRegistry) {
        (self.apps, self.registry) = (apps, registry)
    }

    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            var sightings = DebugAppSightings()
            // The table ends the stream of a slow subscriber. The next subscription begins with the complete list.
            while !Task.isCancelled {
                let (_, changes) = await apps.subscribe()
                await list(&sightings)
                for await change in changes {
                    switch change {
                    case .connected, .received: continue
                    case .identified, .stalled, .disconnected: await list(&sightings)
                    }
                }
                try Task.checkCancellation()
            }
        }
    }

    private func list(_ sightings: inout DebugAppSightings) async {
        for event in sightings.update(await apps.apps) { await registry.apply(event) }
    }
}

extension EndpointRegistry {
    /// Returns whether an owner approved the endpoint of a connected app.
    package func isApproved(_ app: DebugApp) -> Bool {
        let route = Route.network(app.route)
        return endpoints.contains { $0.approvedRoutes.contains { $0.route == route } }
    }
}
