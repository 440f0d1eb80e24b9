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
        var waiter: Promise<Void>?
        var notify: (@Sendable (RPCNotification) -> Void)?

        var outcome: Outcome? {
            result.map { .completed($0) } ?? (questions.members.isEmpty ? nil : .inputRequired(questions))
        }
    }

    private let state = Mutex(State())
    /// Completed when the client will not continue the request.
    let abandoned = Promise<Void>()

    /// Sends a question to the client and returns the answer.
    func ask(_ method: String, _ params: JSONObject?) async -> Result<JSON, RPCError> {
        let answer = Promise<Result<JSON, RPCError>>()
        var question: JSONObject = ["method": .string(method)]
        question["params"] = params.map { .object($0) }
        let name = update { [question] state in
            state.count += 1
            let name = "q\(state.count)"
            state.questions[name] = .object(question)
            state.answers[name] = answer
            return name
        }
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
            let changed = Promise<Void>()
            let outcome = state.withLock { state in
                if state.outcome == nil { state.waiter = changed }
                return state.outcome
            }
            if let outcome { return outcome }
            do { try await changed.value() } catch {
                abandoned.complete(.success(()))
                throw error
            }
        }
    }

    /// Records the final result and returns it to a waiting client.
    func complete(_ result: Result<JSONObject, any Error>) { update { $0.result = result } }

    /// Sets the notification handler of the client's current HTTP request.
    func setNotify(_ notify: (@Sendable (RPCNotification) -> Void)?) { state.withLock { $0.notify = notify } }

    /// Sends a notification to the client's current HTTP request.
    func send(_ notification: RPCNotification) { state.withLock { $0.notify }?(notification) }

    /// Changes the state and wakes a waiting client.
    private func update<Value: Sendable>(_ change: (inout State) -> Value) -> Value {
        let (value, waiter) = state.withLock { state in
            defer { state.waiter = nil }
            return (change(&state), state.waiter)
        }
        waiter?.complete(.success(()))
        return value
    }
}
