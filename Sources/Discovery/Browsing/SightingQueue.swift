import Model
import Synchronization

/// The events of a source on their way to the one who follows it.
///
/// A slow follower loses nothing that still holds: what waits is coalesced per sighting, the last state wins in the place of
/// the first. Losing the source makes everything that waits void, because the source says it all again when it is back. So
/// never more waits than the sightings that stand and those that the follower still believes in.
///
/// Thread safety: everything is behind one mutex.
final class SightingQueue: Sendable {
    private enum Slot: Hashable {
        case sighting(Sighting.ID)
        case source
        case reconciled
    }

    private struct State {
        var order: [Slot] = []
        var waiting: [Slot: SightingEvent] = [:]
        /// What the follower was told to be there.
        var believed: Set<Sighting.ID> = []
        var follower: CheckedContinuation<SightingEvent?, Never>?
        var isFinished = false
    }

    private let state = Mutex(State())

    /// For a single follower. Ends after `finish()`, when everything that waited is taken.
    var events: AsyncStream<SightingEvent> { AsyncStream(unfolding: { await self.next() }) }

    func send(_ event: SightingEvent) {
        let delivery = state.withLock { state in
            guard !state.isFinished else { return nil as Delivery? }
            Self.put(event, in: &state)
            return Self.delivery(from: &state)
        }
        delivery?.complete()
    }

    func finish() {
        let delivery = state.withLock { state in
            state.isFinished = true
            return Self.delivery(from: &state)
        }
        delivery?.complete()
    }

    /// The oldest event that waits, or the next one that comes; nil at the end and in a cancelled task.
    func next() async -> SightingEvent? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (delivery, replaced) = state.withLock { state in
                    let replaced = state.follower
                    state.follower = continuation
                    return (Self.delivery(from: &state), replaced)
                }
                replaced?.resume(returning: nil)
                delivery?.complete()
                // The handler may have run before there was anything to resume.
                if Task.isCancelled { letGo() }
            }
        } onCancel: {
            letGo()
        }
    }

    private struct Delivery {
        let follower: CheckedContinuation<SightingEvent?, Never>
        let event: SightingEvent?

        func complete() { follower.resume(returning: event) }
    }

    private func letGo() {
        let follower = state.withLock { state in
            defer { state.follower = nil }
            return state.follower
        }
        follower?.resume(returning: nil)
    }

    private static func put(_ event: SightingEvent, in state: inout State) {
        let slot: Slot
        switch event {
        case .seen(let sighting): slot = .sighting(sighting.id)
        case .lost(let id):
            slot = .sighting(id)
            if !state.believed.contains(id) {
                // It came and went unseen.
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
        guard let follower = state.follower else { return nil }
        if state.order.isEmpty {
            guard state.isFinished else { return nil }
            state.follower = nil
            return Delivery(follower: follower, event: nil)
        }
        let event = state.waiting.removeValue(forKey: state.order.removeFirst())
        switch event {
        case .seen(let sighting): state.believed.insert(sighting.id)
        case .lost(let id): state.believed.remove(id)
        case .sourceLost, .sourceReconciled, nil: break
        }
        state.follower = nil
        return Delivery(follower: follower, event: event)
    }
}
