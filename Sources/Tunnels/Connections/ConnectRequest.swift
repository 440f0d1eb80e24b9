import Model
import Synchronization
import SystemIO

/// A connect by plan for a task, which then owns the stream.
final class ConnectRequest: Sendable {
    let plan: ConnectPlan
    private let handleNumber = Atomic<UInt64>(0)
    private let promise = Promise<RelayTarget>()

    init(_ plan: ConnectPlan) { self.plan = plan }

    /// The connection in the event loop, which sets the handle at the start.
    var handle: ConnectionHandle {
        get { ConnectionHandle(handleNumber.load(ordering: .relaxed)) }
        set { handleNumber.store(newValue.number, ordering: .relaxed) }
    }

    /// Waits for the stream.
    ///
    /// - Throws: `ConnectPlan.AttemptFailure`; `CancellationError`.
    func value() async throws -> RelayTarget { try await promise.value() }

    /// Completes the request. Closes the stream if the task was cancelled.
    func complete(_ result: Result<RelayTarget, any Error>) {
        if !promise.complete(result) { try? result.get().reject() }
    }
}

/// A request of the event loop to plan the routes again and to connect on a task, because a plan did not connect.
final class FallbackRequest: Sendable {
    /// The connection in the event loop.
    let handle: ConnectionHandle
    /// The route of the plan, and the reason why it failed. Nil without a plan.
    let attempt: (route: Route?, failure: ConnectPlan.AttemptFailure)?
    /// The route of the plan's own connect, which goes on, so that only the other routes are needed; nil if it has failed.
    let racing: Route?
    private let abandoned = Promise<Void>()

    init(
        handle: ConnectionHandle,
        attempt: (route: Route?, failure: ConnectPlan.AttemptFailure)? = nil,
        racing: Route? = nil
    ) {
        (self.handle, self.attempt, self.racing) = (handle, attempt, racing)
    }

    /// Ends the request, because the client is gone or has a stream.
    func abandon() { abandoned.complete(.success(())) }

    /// Waits until the request is abandoned; may be called once. Throws `CancellationError`.
    func waitForAbandonment() async throws { try await abandoned.value() }
}
