import SystemIO

/// The time after which a fixture stops waiting for an event.
///
/// It is a bound for failed tests only. A busy machine needs many times longer than an idle one, and no test is faster with
/// a shorter bound.
package let eventLimit = Duration.seconds(60)

/// Runs the work with a time limit.
///
/// `what` describes the missing event for the error. It is evaluated after the deadline and may include the latest state.
/// - Throws: `TestSupportError` at the deadline, or what the work throws.
package func withDeadline<Value: Sendable>(
    _ limit: Duration,
    _ what: @escaping @Sendable () -> String,
    _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let value = try await withTimeout(limit, clock: ContinuousClock(), work) else {
        throw TestSupportError("\(what()) (waited \(limit))")
    }
    return value
}
