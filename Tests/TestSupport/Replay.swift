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
            for (number, reader) in state.readers {
                if case .terminated = reader.yield(element) { state.readers[number] = nil }
            }
        }
    }

    /// Ends the stream for current readers and, after the replay, for later ones.
    package func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [:] }
            return state.readers
        }
        for reader in readers.values { reader.finish() }
    }

    /// Returns the elements so far, followed by the later ones. `start` is the number of elements to skip.
    package func elements(from start: Int = 0) -> AsyncStream<Element> {
        let (stream, reader) = AsyncStream<Element>.makeStream(bufferingPolicy: .unbounded)
        let isFinished = state.withLock { state in
            for element in state.said.dropFirst(start) { reader.yield(element) }
            // The next element removes a reader that has ended. `onTermination` must not wait for the lock, which is held
            // during each `yield`.
            if state.isFinished { return true }
            state.readers[state.nextReader] = reader
            state.nextReader += 1
            return false
        }
        if isFinished { reader.finish() }
        return stream
    }
}
