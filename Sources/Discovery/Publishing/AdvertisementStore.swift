import Model
import Synchronization

/// The requested advertisements and their state in Avahi.
///
/// Connects the callers with the Avahi thread. Callers get an answer even while libavahi blocks for 25 s. The Avahi
/// thread reads the requests and reports progress.
///
/// Thread safety: one mutex protects everything; no call blocks while holding it.
final class AdvertisementStore: Sendable {
    /// The state of one advertisement in Avahi.
    struct Progress: Hashable, Sendable {
        var state: Advertisement.State
        var reason: String?
        var publishedName: SanitizedText
        /// True if the state will not change soon without an event: published with the current TXT record, failed, or
        /// waiting for an absent daemon.
        var isStable: Bool
    }

    private struct Item {
        var spec: AdvertisementSpec
        var progress: Progress
        /// True until the Avahi thread has read the newest specification.
        var isNew = true

        var isStable: Bool { progress.isStable && !isNew }
    }

    private struct Waiter {
        let id: String
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var items: [String: Item] = [:]
        var order: [String] = []
        /// Removed advertisements that are still published.
        var withdrawing: Set<String> = []
        var lastID = 0
        var isAvailable = false
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
        var abandoned: Set<UInt64> = []
    }

    /// The maximum number of advertisements. Together with two browsers per type and the resolvers, this stays below a
    /// client's 1,024 objects.
    static let limit = 32

    private let state = Mutex(State())
    private let subscribers = Broadcast<Void>(slow: .keepsNewest(1))

    /// All advertisements, in the order in which they were added.
    var advertisements: [Advertisement] {
        state.withLock { state in state.order.compactMap { Self.advertisement($0, in: state) } }
    }

    /// A stream that yields when something may have changed. Pending changes are combined into one.
    func changes() -> AsyncStream<Void> { subscribers.subscribe() }

    /// Returns the advertisements to publish and marks them as read by the Avahi thread.
    func takeDesired() -> [(id: String, spec: AdvertisementSpec)] {
        state.withLock { state in
            state.order.compactMap { id in
                state.items[id]?.isNew = false
                return state.items[id].map { (id, $0.spec) }
            }
        }
    }

    /// Records whether the Avahi thread is running. Without it every advertisement waits.
    func setAvailable(_ isAvailable: Bool) {
        let waiters = state.withLock { state in
            state.isAvailable = isAvailable
            if !isAvailable {
                state.withdrawing = []
                for id in state.order {
                    state.items[id]?.progress.state = .waiting
                    state.items[id]?.progress.isStable = true
                    state.items[id]?.isNew = false
                }
            }
            subscribers.send(())
            return Self.takeStableWaiters(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Adds an advertisement and returns its ID.
    func add(_ spec: AdvertisementSpec) throws(DiscoveryError) -> String {
        if let reason = spec.validationError {
            throw .notPublishable(name: SanitizedText(spec.name).text, reason: reason)
        }
        let id = state.withLock { state -> String? in
            guard state.items.count < Self.limit else { return nil }
            state.lastID += 1
            let id = "a\(state.lastID)"
            let progress = Progress(
                state: .waiting,
                publishedName: SanitizedText(spec.name),
                isStable: !state.isAvailable
            )
            state.items[id] = Item(spec: spec, progress: progress, isNew: state.isAvailable)
            state.order.append(id)
            return id
        }
        guard let id else { throw .tooManyAdvertisements(limit: Self.limit) }
        return id
    }

    /// Replaces the TXT record of an advertisement.
    func update(_ id: String, txt: TXTRecord) throws(DiscoveryError) {
        if let reason = txt.validationError { throw .notPublishable(name: id, reason: reason) }
        let isKnown = state.withLock { state in
            guard var item = state.items[id] else { return false }
            item.spec.txt = txt
            item.isNew = state.isAvailable
            state.items[id] = item
            return true
        }
        if !isKnown { throw .noSuchAdvertisement(id: id) }
    }

    /// Removes an advertisement. The Avahi thread then withdraws it.
    func remove(_ id: String) throws(DiscoveryError) {
        let isKnown = state.withLock { state in
            guard state.items.removeValue(forKey: id) != nil else { return false }
            state.order.removeAll { $0 == id }
            subscribers.send(())
            if state.isAvailable { state.withdrawing.insert(id) }
            return true
        }
        if !isKnown { throw .noSuchAdvertisement(id: id) }
    }

    /// Records the progress of one advertisement. Called by the Avahi thread.
    func report(_ id: String, _ progress: Progress) {
        let waiters = state.withLock { state in
            if let item = state.items[id], item.progress != progress {
                state.items[id]?.progress = progress
                subscribers.send(())
            }
            return Self.takeStableWaiters(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Records that no advertisements other than these are published. Called by the Avahi thread.
    func retainPublished(_ wanted: Set<String>) {
        let waiters = state.withLock { state in
            // An advertisement removed after `takeDesired` is freed in the next cycle.
            state.withdrawing = state.withdrawing.filter { wanted.contains($0) }
            return Self.takeStableWaiters(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until the state of an advertisement is stable, at most for the given time. Returns its state then, nil if
    /// it was withdrawn.
    func waitUntilStable(_ id: String, within limit: Duration, clock: any Clock<Duration>) async -> Advertisement? {
        await withTaskGroup { group in
            group.addTask { await self.waitUntilStable(id) }
            group.addTask { try? await clock.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
        return state.withLock { Self.advertisement(id, in: $0) }
    }

    private func waitUntilStable(_ id: String) async {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if state.abandoned.remove(number) != nil || Self.isStable(id, in: state) { return true }
                    state.waiters[number] = Waiter(id: id, continuation: continuation)
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: number)
                if waiter == nil { state.abandoned.insert(number) }
                return waiter
            }
            waiter?.continuation.resume()
        }
        state.withLock { _ = $0.abandoned.remove(number) }
    }

    private static func isStable(_ id: String, in state: State) -> Bool {
        state.items[id].map(\.isStable) ?? !state.withdrawing.contains(id)
    }

    private static func takeStableWaiters(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        let done = state.waiters.filter { isStable($0.value.id, in: state) }
        for number in done.keys { state.waiters[number] = nil }
        return done.values.map(\.continuation)
    }

    private static func advertisement(_ id: String, in state: State) -> Advertisement? {
        state.items[id].map { item in
            Advertisement(
                id: id,
                spec: item.spec,
                state: item.progress.state,
                reason: item.progress.reason,
                publishedName: item.progress.publishedName
            )
        }
    }
}
