import Synchronization

/// Sends each element to every subscriber, in the order of sending.
///
/// A subscriber that is cancelled, or that lets go of its stream, is removed at once and costs nothing until the next element.
package final class Broadcast<Element: Sendable>: Sendable {
    /// The rule for a subscriber that takes elements more slowly than they are sent.
    package enum SlowSubscriber: Hashable, Sendable {
        /// Its stream ends when more than this number of elements wait: it subscribes again and reads the state anew.
        case ends(after: Int)
        /// It keeps the newest elements, this number of them, and misses the others.
        case keepsNewest(Int)
    }

    private struct State {
        var subscribers: [UInt64: AsyncStream<Element>.Continuation] = [:]
        var lastNumber: UInt64 = 0
        var isFinished = false
    }

    private let rule: SlowSubscriber
    private let state = Mutex(State())

    package init(slow rule: SlowSubscriber) { self.rule = rule }

    package var subscriberCount: Int { state.withLock { $0.subscribers.count } }

    /// Every element from now on; ended at once after `finish()`.
    ///
    /// - Parameter first: An element for this subscriber alone, before all others.
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
        // Under the lock, so that all subscribers see elements of several senders in the same order.
        let slow = state.withLock { state in
            var slow: [AsyncStream<Element>.Continuation] = []
            for (number, subscriber) in state.subscribers {
                guard case .dropped = subscriber.yield(element), case .ends = rule else { continue }
                state.subscribers[number] = nil
                slow.append(subscriber)
            }
            return slow
        }
        // Outside the lock, which the end of a stream takes.
        for subscriber in slow { subscriber.finish() }
    }

    /// Ends every stream, and each that is asked for later.
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
