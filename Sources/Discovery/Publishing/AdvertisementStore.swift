import Model
import Synchronization

/// What is to be advertised, and how far Avahi is with it.
///
/// Between the callers, who must get an answer even while libavahi blocks for 25 s, and the Avahi thread, which reads what is
/// wanted and writes what is.
///
/// Thread safety: everything is behind one mutex; nothing blocks while it is held.
final class AdvertisementStore: Sendable {
    /// How far Avahi is with one advertisement.
    struct Progress: Hashable, Sendable {
        var state: Advertisement.State
        var reason: String?
        var finalName: SanitizedText
        /// Nothing more is going to happen by itself soon: published with the TXT record that is wanted, failed, or waiting
        /// for a daemon that is not there.
        var isSettled: Bool
    }

    private struct Item {
        var spec: AdvertisementSpec
        var progress: Progress
        /// True while the Avahi thread has not seen the newest wish.
        var isNew = true

        var isSettled: Bool { progress.isSettled && !isNew }
    }

    private struct Waiter {
        let id: String
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var items: [String: Item] = [:]
        var order: [String] = []
        /// Taken back, and still published as far as is known.
        var leaving: Set<String> = []
        var lastID = 0
        var isServed = false
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0
        var abandoned: Set<UInt64> = []
    }

    /// With the two browsers of each type and the budget of resolvers this stays below the 1,024 objects of a client.
    static let limit = 32

    private let state = Mutex(State())
    private let followers = Broadcast<Void>(slow: .keepsNewest(1))

    /// In the order in which they were asked for.
    var advertisements: [Advertisement] {
        state.withLock { state in state.order.compactMap { Self.advertisement($0, in: state) } }
    }

    /// Tells each time that something may have changed; several times at once are told as one.
    func changes() -> AsyncStream<Void> { followers.subscribe() }

    /// What the Avahi thread is to bring about; the wishes count as seen.
    func takeWishes() -> [(id: String, spec: AdvertisementSpec)] {
        state.withLock { state in
            state.order.compactMap { id in
                state.items[id]?.isNew = false
                return state.items[id].map { (id, $0.spec) }
            }
        }
    }

    /// Says whether an Avahi thread is there; without one everything waits.
    func serve(_ isServed: Bool) {
        let waiters = state.withLock { state in
            state.isServed = isServed
            if !isServed {
                state.leaving = []
                for id in state.order {
                    state.items[id]?.progress.state = .waiting
                    state.items[id]?.progress.isSettled = true
                    state.items[id]?.isNew = false
                }
            }
            followers.send(())
            return Self.takeSettled(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    func add(_ spec: AdvertisementSpec) throws(DiscoveryError) -> String {
        if let reason = spec.problem {
            throw .notPublishable(name: SanitizedText(spec.name).text, reason: reason)
        }
        let id = state.withLock { state -> String? in
            guard state.items.count < Self.limit else { return nil }
            state.lastID += 1
            let id = "a\(state.lastID)"
            let progress = Progress(
                state: .waiting,
                finalName: SanitizedText(spec.name),
                isSettled: !state.isServed
            )
            state.items[id] = Item(spec: spec, progress: progress, isNew: state.isServed)
            state.order.append(id)
            return id
        }
        guard let id else { throw .tooManyAdvertisements(limit: Self.limit) }
        return id
    }

    func update(_ id: String, txt: TXTRecord) throws(DiscoveryError) {
        if let reason = txt.problem { throw .notPublishable(name: id, reason: reason) }
        let isKnown = state.withLock { state in
            guard var item = state.items[id] else { return false }
            item.spec = AdvertisementSpec(name: item.spec.name, type: item.spec.type, port: item.spec.port, txt: txt)
            item.isNew = state.isServed
            state.items[id] = item
            return true
        }
        if !isKnown { throw .noSuchAdvertisement(id: id) }
    }

    func remove(_ id: String) throws(DiscoveryError) {
        let isKnown = state.withLock { state in
            guard state.items.removeValue(forKey: id) != nil else { return false }
            state.order.removeAll { $0 == id }
            followers.send(())
            if state.isServed { state.leaving.insert(id) }
            return true
        }
        if !isKnown { throw .noSuchAdvertisement(id: id) }
    }

    /// The Avahi thread tells how it stands with one.
    func report(_ id: String, _ progress: Progress) {
        let waiters = state.withLock { state in
            if let item = state.items[id], item.progress != progress {
                state.items[id]?.progress = progress
                followers.send(())
            }
            return Self.takeSettled(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The Avahi thread tells that nothing but these is published.
    func leftAll(but wanted: Set<String>) {
        let waiters = state.withLock { state in
            // What was withdrawn after the wishes were taken is still to be freed in the next turn.
            state.leaving = state.leaving.filter { wanted.contains($0) }
            return Self.takeSettled(&state)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until Avahi is done with it for now, at most so long; then gives it as it stands, nil when it was withdrawn.
    func settled(_ id: String, within limit: Duration, clock: any Clock<Duration>) async -> Advertisement? {
        await withTaskGroup { group in
            group.addTask { await self.untilSettled(id) }
            group.addTask { try? await clock.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
        return state.withLock { Self.advertisement(id, in: $0) }
    }

    private func untilSettled(_ id: String) async {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if state.abandoned.remove(number) != nil || Self.isSettled(id, in: state) { return true }
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

    private static func isSettled(_ id: String, in state: State) -> Bool {
        state.items[id].map(\.isSettled) ?? !state.leaving.contains(id)
    }

    private static func takeSettled(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
        let done = state.waiters.filter { isSettled($0.value.id, in: state) }
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
                finalName: item.progress.finalName
            )
        }
    }
}
