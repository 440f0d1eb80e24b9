package import SystemIO

/// A connect by plan for a task, which then owns the stream.
final class ConnectRequest: Sendable {
    let plan: ConnectPlan
    private let promise = Promise<RelayTarget?>()

    init(_ plan: ConnectPlan) { self.plan = plan }

    /// Waits for the stream; nil if the plan failed.
    func value() async throws -> RelayTarget? { try await promise.value() }

    /// Completes the request. Closes the stream if the task was cancelled.
    func complete(_ result: Result<RelayTarget?, any Error>) {
        if !promise.complete(result) { try? result.get()?.reject() }
    }
}

extension Relay {
    /// Connects by a plan, with the limits of all connections of the relay.
    ///
    /// - Returns: The stream; nil if the plan failed. `Dialer.dial` then gives the reason.
    /// - Throws: `DialError` after the timeout of the plan; `CancellationError`.
    package func connect(_ plan: ConnectPlan) async throws -> Connection? {
        let request = ConnectRequest(plan)
        connect(request)
        do {
            return try await request.value()?.connection()
        } catch {
            abandon(request)
            throw error
        }
    }
}
