import Synchronization

/// A stream of elements with any number of readers, each of which reads from the beginning.
package final class Replay<Element: Sendable>: Sendable {
    private struct State {
        var said: [Element] = []
        var isFinished = false
        var readers: [Int: AsyncStream<Element>.Continuation] = [:]
        var nextReader = 0
    }

    private let state = Mutex(State())

    package init() {}

    package var soFar: [Element] { state.withLock { $0.said } }

    package func say(_ element: Element) {
        state.withLock { state in
            state.said.append(element)
            for reader in state.readers.values { reader.yield(element) }
        }
    }

    /// Ends the stream for current readers and, after the replay, for later ones.
    package func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [:] }
            return state.readers
        }
        // Runs outside the lock, because ending a stream calls `onTermination`, which takes the lock.
        for reader in readers.values { reader.finish() }
    }

    /// Returns the elements so far, followed by the later ones. `start` is the number of elements to skip.
    package func elements(from start: Int = 0) -> AsyncStream<Element> {
        let (stream, reader) = AsyncStream<Element>.makeStream(bufferingPolicy: .unbounded)
        let (token, isFinished) = state.withLock { state in
            for element in state.said.dropFirst(start) { reader.yield(element) }
            defer { state.nextReader += 1 }
            if !state.isFinished { state.readers[state.nextReader] = reader }
            return (state.nextReader, state.isFinished)
        }
        guard !isFinished else {
            reader.finish()
            return stream
        }
        reader.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.readers.removeValue(forKey: token) }
        }
        return stream
    }
}
