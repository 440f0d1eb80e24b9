import Model
import Synchronization
import SystemIO

/// A request to an app that may ask for input while it runs, for a 2026-07-28 client (multi round-trip requests). The
/// client gets a question as a result and repeats the request with the answer. The app waits meanwhile.
final class SuspendedRequest: Sendable {
    /// The next result for the client.
    enum Outcome: Sendable {
        case completed(Result<JSONObject, any Error>)
        /// Questions by the names that the answers must use.
        case inputRequired(JSONObject)
    }

    private struct State {
        var questions = JSONObject()
        var answers: [String: Promise<Result<JSON, RPCError>>] = [:]
        var count = 0
        var result: Result<JSONObject, any Error>?
        var notify: (@Sendable (RPCNotification) -> Void)?

        var outcome: Outcome? {
            result.map { .completed($0) } ?? (questions.members.isEmpty ? nil : .inputRequired(questions))
        }
    }

    private let state: Mutex<State>
    /// A value for each change that may end the wait of the client.
    private let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// Completed when the client will not continue the request.
    let abandoned = Promise<Void>()

    /// Creates a request with the notification handler of the client's HTTP request.
    init(notify: (@Sendable (RPCNotification) -> Void)? = nil) { state = Mutex(State(notify: notify)) }

    /// Sends a question to the client and returns the answer.
    func ask(_ method: String, _ params: JSONObject?) async -> Result<JSON, RPCError> {
        let answer = Promise<Result<JSON, RPCError>>()
        var question: JSONObject = ["method": .string(method)]
        question["params"] = params.map { .object($0) }
        let name = state.withLock { [question] state in
            state.count += 1
            let name = "q\(state.count)"
            state.questions[name] = .object(question)
            state.answers[name] = answer
            return name
        }
        change.yield()
        defer { state.withLock { ($0.questions[name], $0.answers[name]) = (nil, nil) } }
        do { return try await answer.value() } catch {
            return .failure(.internalError("the client no longer waits for this request"))
        }
    }

    /// Takes the client's answers. A question without an answer is asked again.
    func provideAnswers(_ answers: JSONObject, notify: (@Sendable (RPCNotification) -> Void)?) {
        let answered = state.withLock { state in
            state.notify = notify
            return answers.members.compactMap { answer in
                state.questions[answer.name] = nil
                return state.answers.removeValue(forKey: answer.name).map { ($0, answer.value) }
            }
        }
        for (promise, answer) in answered { promise.complete(.success(.success(answer))) }
    }

    /// Returns the final result or the open questions. Cancelling the wait abandons the request.
    func next() async throws -> Outcome {
        while true {
            if let outcome = state.withLock({ $0.outcome }) { return outcome }
            var iterator = changes.makeAsyncIterator()
            // The end of the stream is the cancellation.
            guard await iterator.next() != nil else {
                abandoned.complete(.success(()))
                throw CancellationError()
            }
        }
    }

    /// Records the final result and returns it to a waiting client.
    func complete(_ result: Result<JSONObject, any Error>) {
        state.withLock { $0.result = result }
        change.yield()
    }

    /// Sends a notification to the client's current HTTP request.
    func send(_ notification: RPCNotification) { state.withLock { $0.notify }?(notification) }
}
