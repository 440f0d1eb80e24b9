/// Polls until `question` returns a value, for conditions without an event to wait for.
///
/// - Throws: `TestSupportError` with the missing condition at the deadline, or an error of the question.
package func eventually<Value>(
    within limit: Duration = eventLimit,
    _ promise: String,
    _ answer: () async throws -> Value?
) async throws -> Value {
    let end = ContinuousClock.now + limit
    while true {
        if let value = try await answer() { return value }
        guard ContinuousClock.now < end else { throw TestSupportError("\(promise): not within \(limit)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}

/// Polls until the condition is true.
package func eventually(
    within limit: Duration = eventLimit,
    _ promise: String,
    _ holds: () async throws -> Bool
) async throws {
    let _: Bool = try await eventually(within: limit, promise) { try await holds() ? true : nil }
}
