import Model
import Synchronization

/// A queue of a source's events for a single consumer.
///
/// Pending events are coalesced per sighting: the newest state replaces the older one and keeps its place. Losing the
/// source discards all pending events, because the source reports everything again when it is back. The queue therefore
/// never exceeds the current sightings plus those already delivered.
///
/// Thread safety: one mutex protects everything.
final class SightingQueue: Sendable {
    private enum Slot: Hashable {
        case sighting(Sighting.ID)
        case source
        case reconciled
    }

    private struct State {
        var order: [Slot] = []
        var waiting: [Slot: SightingEvent] = [:]
        /// Sightings that were delivered to the consumer and not reported lost since.
        var delivered: Set<Sighting.ID> = []
        var consumer: CheckedContinuation<SightingEvent?, Never>?
        var isFinished = false
    }

    private let state = Mutex(State())

    /// The events, for a single consumer. Ends after `finish()`, once all pending events are consumed.
    var events: AsyncStream<SightingEvent> { AsyncStream(unfolding: { await self.next() }) }

    /// Adds an event or replaces the pending event of the same sighting.
    func send(_ event: SightingEvent) {
        let delivery = state.withLock { state in
            guard !state.isFinished else { return nil as Delivery? }
            Self.put(event, in: &state)
            return Self.delivery(from: &state)
        }
        delivery?.complete()
    }

    /// Ends the queue. Events sent later are dropped.
    func finish() {
        let delivery = state.withLock { state in
            state.isFinished = true
            return Self.delivery(from: &state)
        }
        delivery?.complete()
    }

    /// Returns the oldest pending event or waits for the next one. Returns nil at the end and in a cancelled task.
    func next() async -> SightingEvent? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (delivery, replaced) = state.withLock { state in
                    let replaced = state.consumer
                    state.consumer = continuation
                    return (Self.delivery(from: &state), replaced)
                }
                replaced?.resume(returning: nil)
                delivery?.complete()
                // The cancellation handler may have run before the continuation was stored.
                if Task.isCancelled { resumeCancelled() }
            }
        } onCancel: {
            resumeCancelled()
        }
    }

    private struct Delivery {
        let consumer: CheckedContinuation<SightingEvent?, Never>
        let event: SightingEvent?

        func complete() { consumer.resume(returning: event) }
    }

    private func resumeCancelled() {
        let consumer = state.withLock { state in
            defer { state.consumer = nil }
            return state.consumer
        }
        consumer?.resume(returning: nil)
    }

    private static func put(_ event: SightingEvent, in state: inout State) {
        let slot: Slot
        switch event {
        case .seen(let sighting): slot = .sighting(sighting.id)
        case .lost(let id):
            slot = .sighting(id)
            if !state.delivered.contains(id) {
                // The sighting appeared and disappeared before delivery.
                state.waiting[slot] = nil
                state.order.removeAll { $0 == slot }
                return
            }
        case .sourceLost:
            state.order = []
            state.waiting = [:]
            slot = .source
        case .sourceReconciled: slot = .reconciled
        }
        if state.waiting.updateValue(event, forKey: slot) == nil { state.order.append(slot) }
    }

    private static func delivery(from state: inout State) -> Delivery? {
        guard let consumer = state.consumer else { return nil }
        if state.order.isEmpty {
            guard state.isFinished else { return nil }
            state.consumer = nil
            return Delivery(consumer: consumer, event: nil)
        }
        let event = state.waiting.removeValue(forKey: state.order.removeFirst())
        switch event {
        case .seen(let sighting): state.delivered.insert(sighting.id)
        case .lost(let id): state.delivered.remove(id)
        case .sourceLost, .sourceReconciled, nil: break
        }
        state.consumer = nil
        return Delivery(consumer: consumer, event: event)
    }
}
