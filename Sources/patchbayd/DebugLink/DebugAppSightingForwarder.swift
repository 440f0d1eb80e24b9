import Apps
import Model
import Registry
import ServiceLifecycle

/// Lists the apps that connected to the state debugger as endpoints.
struct DebugAppSightingForwarder: Service {
    let apps: DebugAppTable
    let registry: EndpointRegistry

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            var sightings = DebugAppSightings()
            // The table ends the stream of a slow subscriber. The next subscription begins with the complete list.
            while !Task.isCancelled {
                let (_, changes) = await apps.subscribe()
                await forward(&sightings)
                for await change in changes {
                    switch change {
                    case .connected, .received: continue
                    case .identified, .stalled, .disconnected: await forward(&sightings)
                    }
                }
                try Task.checkCancellation()
            }
        }
    }

    private func forward(_ sightings: inout DebugAppSightings) async {
        for event in sightings.update(await apps.apps) { await registry.apply(event) }
    }
}

/// The approval of connected apps, for states that another debugger sends.
struct DebugAppApproval: Sendable {
    let registry: EndpointRegistry

    /// Returns whether an owner approved the endpoint of an app.
    func isApproved(_ app: DebugApp) async -> Bool {
        let route = Route.network(app.route)
        return await registry.endpoints.contains { $0.approvedRoutes.contains { $0.route == route } }
    }
}
