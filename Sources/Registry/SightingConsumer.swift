package import Logging
package import Model
import ServiceLifecycle

/// Applies the events of one source to the registry.
package struct SightingConsumer<Events: AsyncSequence<SightingEvent, Never> & Sendable>: Service {
    private let registry: EndpointRegistry
    private let events: Events
    private let observer: @Sendable (Sighting) async -> Void
    private let logger: Logger

    /// - Parameters:
    ///   - registry: The registry.
    ///   - events: The events of the source.
    ///   - logger: Logs events that the limits of the registry refuse.
    ///   - observer: Called with each sighting that the registry has applied.
    package init(
        _ registry: EndpointRegistry,
        of events: Events,
        logger: Logger,
        observer: @escaping @Sendable (Sighting) async -> Void = { _ in }
    ) {
        (self.registry, self.events, self.logger, self.observer) = (registry, events, logger, observer)
    }

    package func run() async throws {
        var loggedCount: UInt64 = 0
        for await event in events.cancelOnGracefulShutdown() {
            await registry.apply(event)
            if case .seen(let sighting) = event { await observer(sighting) }
            let refusals = await registry.refusals
            // Logged each time the number doubles, so that a flood does not fill the log.
            guard refusals.total > 2 * loggedCount, let status = SourceStatus(of: refusals) else { continue }
            loggedCount = refusals.total
            logger.warning("\(status.detail)", metadata: ["hint": "\(status.hint ?? "")"])
        }
    }
}
