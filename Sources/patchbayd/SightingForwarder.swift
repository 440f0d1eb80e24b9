import Logging
import Model
import Registry
import ServiceLifecycle

/// Lets the registry hear one source, as long as both last.
struct SightingForwarder: Service {
    let registry: EndpointRegistry
    let events: AsyncStream<SightingEvent>
    let logger: Logger

    func run() async throws {
        var told: UInt64 = 0
        for await event in events.cancelOnGracefulShutdown() {
            await registry.apply(event)
            let refusals = await registry.refusals
            // Told when the number doubles, so that a flood does not fill the log.
            guard refusals.total > 2 * told, let status = SourceStatus(of: refusals) else { continue }
            told = refusals.total
            logger.warning("\(status.detail)", metadata: ["next": "\(status.remedy ?? "")"])
        }
    }
}
