import Model
import Synchronization
import SystemIO

/// Tells those who wait for news of an endpoint, or of all.
final class EndpointNotifier<News: Sendable>: Sendable {
    private struct Listener: Sendable {
        /// Nil for all.
        let id: EndpointID?
        let hear: @Sendable (EndpointID, News) -> Void
    }

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var last: UInt64 = 0
        /// Those who wait until nobody listens to an endpoint alone.
        var waiting: [(id: EndpointID, end: Promise<Void>)] = []

        func isHeard(alone id: EndpointID) -> Bool { listeners.values.contains { $0.id == id } }
    }

    private let state = Mutex(State())

    /// News from now on of one endpoint, or of all where that is nil; each as it is translated, where that is not nil. Of
    /// those that wait for a slow listener the newest are kept.
    func stream<Heard: Sendable>(
        of id: EndpointID?,
        keeping capacity: Int,
        _ translate: @escaping @Sendable (EndpointID, News) -> Heard?
    ) -> AsyncStream<Heard> {
        let (stream, continuation) = AsyncStream.makeStream(of: Heard.self, bufferingPolicy: .bufferingNewest(capacity))
        let number = state.withLock { state in
            state.last += 1
            state.listeners[state.last] = Listener(id: id) { id, news in
                if let heard = translate(id, news) { continuation.yield(heard) }
            }
            return state.last
        }
        continuation.onTermination = { [weak self] _ in self?.remove(number) }
        return stream
    }

    func ring(_ id: EndpointID, _ news: News) {
        let hearing = state.withLock { $0.listeners.values.filter { $0.id == nil || $0.id == id } }
        for listener in hearing { listener.hear(id, news) }
    }

    /// Everybody who listens to one endpoint, as if something had happened to each.
    func ringAll(_ news: News) {
        let hearing = state.withLock { Array($0.listeners.values) }
        for listener in hearing { if let id = listener.id { listener.hear(id, news) } }
    }

    /// Whether anybody hears of an endpoint, among others or of it alone.
    func isHeard(_ id: EndpointID) -> Bool {
        state.withLock { $0.listeners.values.contains { $0.id == nil || $0.id == id } }
    }

    func isHeard(alone id: EndpointID) -> Bool { state.withLock { $0.isHeard(alone: id) } }

    /// Returns when nobody listens to that endpoint alone, or the task is cancelled.
    func quiet(_ id: EndpointID) async {
        let end = Promise<Void>()
        let isHeard = state.withLock { state in
            guard state.isHeard(alone: id) else { return false }
            state.waiting.append((id, end))
            return true
        }
        if isHeard { try? await end.value() }
        state.withLock { $0.waiting.removeAll { $0.end === end } }
    }

    private func remove(_ number: UInt64) {
        let ends = state.withLock { state -> [Promise<Void>] in
            guard let id = state.listeners.removeValue(forKey: number)?.id, !state.isHeard(alone: id) else { return [] }
            return state.waiting.filter { $0.id == id }.map(\.end)
        }
        for end in ends { end.settle(.success(())) }
    }
}
