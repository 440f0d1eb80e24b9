/// Runs the work and gives up when it takes longer than a test should wait.
///
/// `what` says what did not happen, for the error; it is asked only then, so it may tell the latest state.
/// - Throws: `RigError` at the deadline, or what the work throws.
package func withDeadline<Value: Sendable>(
    _ limit: Duration,
    _ what: @escaping @Sendable () -> String,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask(operation: work)
        group.addTask {
            try await Task.sleep(for: limit)
            throw RigError("\(what()) (waited \(limit))")
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}
