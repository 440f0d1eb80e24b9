import Model
import Registry
import ServiceLifecycle

/// Lets the registry hear one source, as long as both last.
struct SightingFollower: Service {
    let registry: EndpointRegistry
    let events: AsyncStream<SightingEvent>

    func run() async throws {
        await registry.follow(events.cancelOnGracefulShutdown())
    }
}
