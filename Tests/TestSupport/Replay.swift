import Synchronization

/// Everything said so far and all that follows, for any number of readers, each from the beginning.
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

    /// Ends every reader's loop, and every later one after its replay.
    package func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [:] }
            return state.readers
        }
        // Outside the lock: ending a stream calls `onTermination`, which takes it.
        for reader in readers.values { reader.finish() }
    }

    /// What was said, then what follows; `start` is how many elements to leave out, for a reader that only cares about what comes next.
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
