import Synchronization

/// Sends each element to every subscriber, in the order of sending.
///
/// A subscriber that is cancelled or releases its stream is removed at once.
package final class Broadcast<Element: Sendable>: Sendable {
    /// The policy for a subscriber that reads more slowly than elements are sent.
    package enum SlowSubscriber: Hashable, Sendable {
        /// Ends the stream when more than this number of elements are buffered. The subscriber must subscribe again and
        /// read the current state.
        case ends(after: Int)
        /// Buffers this number of the newest elements and drops older ones.
        case keepsNewest(Int)
    }

    private struct State {
        var subscribers: [UInt64: AsyncStream<Element>.Continuation] = [:]
        var lastNumber: UInt64 = 0
        var isFinished = false
    }

    private let rule: SlowSubscriber
    /// Held by a sender, so that all subscribers receive elements of concurrent senders in the same order.
    private let sending = Mutex(())
    /// Never held during a `yield`. A yield waits for a cancellation of the subscriber's task, and the cancellation waits
    /// for this lock in `onTermination`.
    private let state = Mutex(State())

    package init(slow rule: SlowSubscriber) { self.rule = rule }

    package var subscriberCount: Int { state.withLock { $0.subscribers.count } }

    /// Returns a stream of all elements sent from now on. After `finish()` the stream ends at once.
    ///
    /// - Parameter first: An element for this subscriber only, before all others.
    /// - Returns: A stream for one reader.
    package func subscribe(startingWith first: Element? = nil) -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(of: Element.self, bufferingPolicy: policy)
        if let first { continuation.yield(first) }
        let number = state.withLock { state -> UInt64? in
            guard !state.isFinished else { return nil }
            state.lastNumber += 1
            state.subscribers[state.lastNumber] = continuation
            return state.lastNumber
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.subscribers.removeValue(forKey: number) }
        }
        return stream
    }

    package func send(_ element: Element) {
        sending.withLock { _ in
            for (number, subscriber) in state.withLock({ $0.subscribers }) {
                guard case .dropped = subscriber.yield(element), case .ends = rule else { continue }
                _ = state.withLock { $0.subscribers.removeValue(forKey: number) }
                subscriber.finish()
            }
        }
    }

    /// Ends all streams, and all streams that are created later.
    package func finish() {
        let subscribers = state.withLock { state in
            state.isFinished = true
            defer { state.subscribers = [:] }
            return Array(state.subscribers.values)
        }
        for subscriber in subscribers { subscriber.finish() }
    }

    private var policy: AsyncStream<Element>.Continuation.BufferingPolicy {
        switch rule {
        case .ends(let limit): .bufferingOldest(limit)
        case .keepsNewest(let count): .bufferingNewest(count)
        }
    }
}
