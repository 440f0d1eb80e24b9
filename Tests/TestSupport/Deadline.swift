/// Runs the work with a time limit.
///
/// `what` describes the missing event for the error. It is evaluated at the deadline and may include the latest state.
/// - Throws: `TestSupportError` at the deadline, or what the work throws.
package func withDeadline<Value: Sendable>(
    _ limit: Duration,
    _ what: @escaping @Sendable () -> String,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask(operation: work)
        group.addTask {
            try await Task.sleep(for: limit)
            throw TestSupportError("\(what()) (waited \(limit))")
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}
