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

    private struct Question {
        let name: String
        let request: JSON
        let answer: Promise<Result<JSON, RPCError>>
    }

    private struct State {
        var questions: [Question] = []
        var count = 0
        var result: Result<JSONObject, any Error>?
        var waiter: Promise<Outcome>?
        var notify: (@Sendable (RPCNotification) -> Void)?
    }

    private let state = Mutex(State())
    /// Completed when the client will not continue the request.
    let abandoned = Promise<Void>()

    /// Sends a question to the client and returns the answer.
    func ask(_ method: String, _ params: JSONObject?) async -> Result<JSON, RPCError> {
        let answer = Promise<Result<JSON, RPCError>>()
        var request: JSONObject = ["method": .string(method)]
        request["params"] = params.map { .object($0) }
        let question = JSON.object(request)
        let (name, waiter, outcome) = state.withLock { state in
            state.count += 1
            let name = "q\(state.count)"
            state.questions.append(Question(name: name, request: question, answer: answer))
            defer { state.waiter = nil }
            return (name, state.waiter, Self.outcome(of: state.questions))
        }
        waiter?.complete(.success(outcome))
        defer { state.withLock { $0.questions.removeAll { $0.name == name } } }
        do { return try await answer.value() } catch {
            return .failure(.internalError("the client no longer waits for this request"))
        }
    }

    /// Takes the client's answers. A question without an answer is asked again.
    func provideAnswers(_ answers: JSONObject, notify: (@Sendable (RPCNotification) -> Void)?) {
        let answered = state.withLock { state in
            state.notify = notify
            let answered = state.questions.compactMap { question in
                answers[question.name].map { (question.answer, $0) }
            }
            state.questions.removeAll { answers[$0.name] != nil }
            return answered
        }
        for (promise, answer) in answered { promise.complete(.success(.success(answer))) }
    }

    /// Returns the final result or the open questions. Cancelling the wait abandons the request.
    func next() async throws -> Outcome {
        let waiter = Promise<Outcome>()
        let outcome = state.withLock { state -> Outcome? in
            if let result = state.result { return .completed(result) }
            if !state.questions.isEmpty { return Self.outcome(of: state.questions) }
            state.waiter = waiter
            return nil
        }
        if let outcome { return outcome }
        do { return try await waiter.value() } catch {
            abandoned.complete(.success(()))
            throw error
        }
    }

    /// Records the final result and returns it to a waiting client.
    func complete(_ result: Result<JSONObject, any Error>) {
        let waiter = state.withLock { state in
            state.result = result
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.complete(.success(.completed(result)))
    }

    /// Sets the notification handler of the client's current HTTP request.
    func setNotify(_ notify: (@Sendable (RPCNotification) -> Void)?) { state.withLock { $0.notify = notify } }

    /// Sends a notification to the client's current HTTP request.
    func send(_ notification: RPCNotification) { state.withLock { $0.notify }?(notification) }

    private static func outcome(of questions: [Question]) -> Outcome {
        var requests = JSONObject()
        for question in questions { requests[question.name] = question.request }
        return .inputRequired(requests)
    }
}

/// Suspended requests that wait for answers from their clients.
struct SuspendedRequestStore: Sendable {
    /// The properties that a continued request must share with the suspended one.
    struct Key: Hashable, Sendable {
        let holder: String
        let endpoint: String
        let method: String
        /// The parameters as JSON text, without state, answers and `_meta`.
        let params: String
    }

    private struct Entry: Sendable {
        let key: Key
        let request: SuspendedRequest
        let since: Duration
    }

    /// At most 8 suspended requests per user or grant, and 64 in total. They expire after 300 s.
    static let limitPerHolder = 8
    static let limit = 64
    static let lifetime = Duration.seconds(300)
    /// Distinguishes Patchbay's request states from those of apps.
    static let prefix = "patchbay-"

    private var entries: [String: Entry] = [:]

    /// Saves a request under a new random state of 128 bits. Returns the state and the expired requests, which the
    /// caller must abandon.
    ///
    /// - Throws: An error if the limit is reached.
    mutating func save(
        _ request: SuspendedRequest,
        for key: Key,
        at now: Duration
    ) throws(RPCError) -> (state: String, expired: [SuspendedRequest]) {
        let expired = entries.filter { now - $0.value.since >= Self.lifetime }
        for state in expired.keys { entries[state] = nil }
        guard entries.count < Self.limit,
            entries.values.count(where: { $0.key.holder == key.holder }) < Self.limitPerHolder
        else {
            throw .internalError(
                "too many requests wait for input: at most \(Self.limitPerHolder) per client"
            )
        }
        let state = Self.prefix + SessionIDSigner.randomText()
        entries[state] = Entry(key: key, request: request, since: now)
        return (state, expired.values.map(\.request))
    }

    /// Removes and returns the request with that state. The key must match, and a state is valid once.
    mutating func resume(_ state: String, for key: Key) throws(RPCError) -> SuspendedRequest {
        guard let entry = entries[state], entry.key == key else {
            throw .invalidParams(
                "this requestState is unknown or expired: send the request again without it"
            )
        }
        entries[state] = nil
        return entry.request
    }
}
