/// Runs `body`, and gives it up when the time is over.
///
/// - Returns: Nil when the time was over first; `body` has been cancelled and has ended by then.
/// - Throws: What `body` throws; `CancellationError`.
package func withDeadline<Value: Sendable>(
    _ limit: Duration,
    clock: any Clock<Duration>,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value? {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await clock.sleep(for: limit)
            return nil
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}
