import Model
import Synchronization
import SystemIO

/// Publishes events of one endpoint or of all endpoints to subscribers.
final class EndpointNotifier<Event: Sendable>: Sendable {
    private struct Subscriber: Sendable {
        /// Nil subscribes to all endpoints.
        let id: EndpointID?
        let deliver: @Sendable (EndpointID, Event) -> Void
    }

    private struct State {
        var subscribers: [UInt64: Subscriber] = [:]
        var last: UInt64 = 0
        /// Tasks that wait until an endpoint has no subscribers of its own.
        var waiting: [(id: EndpointID, end: Promise<Void>)] = []

        func hasSubscribers(only id: EndpointID) -> Bool { subscribers.values.contains { $0.id == id } }
    }

    private let state = Mutex(State())

    /// Streams events of one endpoint, or of all if `id` is nil. The closure translates events and drops those for
    /// which it returns nil. For a slow reader, the newest events are kept.
    func stream<Output: Sendable>(
        of id: EndpointID?,
        bufferSize capacity: Int,
        _ translate: @escaping @Sendable (EndpointID, Event) -> Output?
    ) -> AsyncStream<Output> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Output.self,
            bufferingPolicy: .bufferingNewest(capacity)
        )
        let number = state.withLock { state in
            state.last += 1
            state.subscribers[state.last] = Subscriber(id: id) { id, event in
                if let output = translate(id, event) { continuation.yield(output) }
            }
            return state.last
        }
        continuation.onTermination = { [weak self] _ in self?.remove(number) }
        return stream
    }

    /// Publishes an event of an endpoint.
    func notify(_ id: EndpointID, _ event: Event) {
        let matching = state.withLock { $0.subscribers.values.filter { $0.id == nil || $0.id == id } }
        for subscriber in matching { subscriber.deliver(id, event) }
    }

    /// Notifies each subscriber of a single endpoint, as if that endpoint had an event.
    func notifyAll(_ event: Event) {
        let matching = state.withLock { Array($0.subscribers.values) }
        for subscriber in matching { if let id = subscriber.id { subscriber.deliver(id, event) } }
    }

    /// Returns whether an endpoint has subscribers, of its own or of all endpoints.
    func hasSubscribers(_ id: EndpointID) -> Bool {
        state.withLock { $0.subscribers.values.contains { $0.id == nil || $0.id == id } }
    }

    func hasSubscribers(only id: EndpointID) -> Bool { state.withLock { $0.hasSubscribers(only: id) } }

    /// Returns when the endpoint has no subscribers of its own, or when the task is cancelled.
    func waitUntilUnsubscribed(_ id: EndpointID) async {
        let end = Promise<Void>()
        let isSubscribed = state.withLock { state in
            guard state.hasSubscribers(only: id) else { return false }
            state.waiting.append((id, end))
            return true
        }
        if isSubscribed { try? await end.value() }
        state.withLock { $0.waiting.removeAll { $0.end === end } }
    }

    private func remove(_ number: UInt64) {
        let ends = state.withLock { state -> [Promise<Void>] in
            guard let id = state.subscribers.removeValue(forKey: number)?.id, !state.hasSubscribers(only: id) else {
                return []
            }
            return state.waiting.filter { $0.id == id }.map(\.end)
        }
        for end in ends { end.complete(.success(())) }
    }
}
