import Model
import Synchronization
import SystemIO

/// The calls and change streams in progress, by endpoint. They are cancelled when the access to the endpoint ends.
final class EndpointTasks: Sendable {
    private struct Entry: Sendable {
        let end = Promise<Void>()
        let isFinished = AsyncLatch()
    }

    private struct State {
        var entries: [EndpointID: [UInt64: Entry]] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Runs a closure that uses an app. The closure looks up its permissions itself, so that it fails if it begins after
    /// `cancelAll(of:)`.
    ///
    /// - Throws: Errors of the closure; `AppError.accessEnded` if it was cancelled.
    func run<Value: Sendable>(
        at id: EndpointID,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let entry = Entry()
        let number = state.withLock { state in
            state.lastNumber += 1
            state.entries[id, default: [:]][state.lastNumber] = entry
            return state.lastNumber
        }
        defer {
            state.withLock { state in
                state.entries[id]?[number] = nil
                if state.entries[id]?.isEmpty == true { state.entries[id] = nil }
            }
            entry.isFinished.open()
        }
        guard let value = try await withCancellation(when: { try await entry.end.value() }, body) else {
            throw AppError.accessEnded
        }
        return value
    }

    /// Cancels what is in progress at an endpoint. Returns when all of it has ended.
    func cancelAll(of id: EndpointID) async {
        let entries = state.withLock { Array($0.entries[id, default: [:]].values) }
        for entry in entries { entry.end.complete(.success(())) }
        for entry in entries { await entry.isFinished.wait() }
    }
}
