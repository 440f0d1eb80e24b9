import Model
import SystemIO

/// A connect by plan for a task, which then owns the stream.
final class ConnectRequest: Sendable {
    let plan: ConnectPlan
    private let promise = Promise<RelayTarget>()

    init(_ plan: ConnectPlan) { self.plan = plan }

    /// Waits for the stream.
    ///
    /// - Throws: `ConnectPlan.Failure`; `CancellationError`.
    func value() async throws -> RelayTarget { try await promise.value() }

    /// Completes the request. Closes the stream if the task was cancelled.
    func complete(_ result: Result<RelayTarget, any Error>) {
        if !promise.complete(result) { try? result.get().reject() }
    }
}

/// A request of the event loop for a connection that its plan did not connect.
final class DialRequest: Sendable {
    /// The connection in the event loop.
    let token: ConnectionToken
    /// The route of the plan, and the reason why it failed. Nil without a plan.
    let attempt: (route: Route?, failure: ConnectPlan.Failure)?
    /// The route of the plan's own connect, which goes on, so that only the other routes are needed; nil if it has failed.
    let racing: Route?
    private let abandoned = Promise<Void>()

    init(
        token: ConnectionToken,
        attempt: (route: Route?, failure: ConnectPlan.Failure)? = nil,
        racing: Route? = nil
    ) {
        (self.token, self.attempt, self.racing) = (token, attempt, racing)
    }

    /// Ends the dial, because the client is gone or has a stream.
    func abandon() { abandoned.complete(.success(())) }

    /// Runs `body` until it returns or the dial is abandoned.
    ///
    /// - Throws: The error of `body`; `CancellationError` if the dial was abandoned.
    func run(_ body: @escaping @Sendable () async throws -> RelayTarget) async throws -> RelayTarget {
        try await withThrowingTaskGroup(of: RelayTarget?.self) { group in
            group.addTask { try await body() }
            group.addTask { [abandoned] in
                try? await abandoned.value()
                return nil
            }
            defer { group.cancelAll() }
            if let target = try await group.next() ?? nil { return target }
            group.cancelAll()
            while let result = await group.nextResult() { try? result.get()?.reject() }
            throw CancellationError()
        }
    }
}
