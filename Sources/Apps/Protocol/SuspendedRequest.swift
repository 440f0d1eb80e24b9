package import Model
import SystemIO

/// A request of an app to its client (elicitation, sampling, roots) that waits for the client's answer.
///
/// It is the same value from the message of the app to the message to the client, whatever the protocol versions of the
/// two. `AppRequests` and `RequestSender.answerInputRequests` read it from streams and from results of apps.
/// `SessionStore` and `SuspendedCall` pass it to clients, on streams and as results.
package final class SuspendedRequest: Sendable {
    package let method: String
    package let params: JSONObject?
    /// False for a request that may concern any request of the client. Others end with the one they belong to.
    package let isBound: Bool
    private let promise = Promise<Result<JSON, RPCError>>()

    package init(_ method: String, _ params: JSONObject? = nil, isBound: Bool = true) {
        (self.method, self.params, self.isBound) = (method, params, isBound)
    }

    /// Answers the request. The first answer counts.
    package func complete(_ answer: Result<JSON, RPCError>) { promise.complete(.success(answer)) }

    /// Ends the request without an answer.
    func cancel() { promise.complete(.failure(CancellationError())) }

    /// Waits for the client's answer. Only the client's side may wait.
    ///
    /// - Throws: `CancellationError` if the app no longer waits.
    package func answer() async throws -> Result<JSON, RPCError> { try await promise.value() }
}
