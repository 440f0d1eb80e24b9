/// Asks again and again until there is an answer: for things that offer no event to wait for.
///
/// - Throws: `RigError` saying which promise was not kept, or what the question throws.
package func eventually<Value>(
    within limit: Duration = .seconds(10),
    _ promise: String,
    _ answer: () async throws -> Value?
) async throws -> Value {
    let end = ContinuousClock.now + limit
    while true {
        if let value = try await answer() { return value }
        guard ContinuousClock.now < end else { throw RigError("\(promise): not within \(limit)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}

/// Asks again and again until it is so.
package func eventually(
    within limit: Duration = .seconds(10),
    _ promise: String,
    _ holds: () async throws -> Bool
) async throws {
    let _: Bool = try await eventually(within: limit, promise) { try await holds() ? true : nil }
}
