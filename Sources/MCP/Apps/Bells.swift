import Model
import Synchronization

/// Tells those who wait for news of an endpoint, or of all.
final class Bells<News: Sendable>: Sendable {
    private struct Listener: Sendable {
        /// Nil for all.
        let id: EndpointID?
        let hear: @Sendable (EndpointID, News) -> Void
    }

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var last: UInt64 = 0
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

    /// Everybody, as if something had happened to all.
    func ringAll(_ news: News) {
        let hearing = state.withLock { Array($0.listeners.values) }
        for listener in hearing { if let id = listener.id { listener.hear(id, news) } }
    }

    func isHeard(_ id: EndpointID) -> Bool {
        state.withLock { $0.listeners.values.contains { $0.id == nil || $0.id == id } }
    }

    private func remove(_ number: UInt64) { state.withLock { _ = $0.listeners.removeValue(forKey: number) } }
}
