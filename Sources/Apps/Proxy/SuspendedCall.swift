import Model
import Synchronization
import SystemIO

/// A request of a 2026-07-28 client to an app that may ask for input while it runs (multi round-trip requests). The
/// client gets a question as a result and repeats the request with the answer. The app waits meanwhile.
final class SuspendedCall: Sendable {
    /// The next result for the client.
    enum Outcome: Sendable {
        case completed(Result<JSONObject, any Error>)
        /// Questions by the names that the answers must use.
        case inputRequired(JSONObject)
    }

    private struct State {
        /// The requests of the app by the names that the answers must use, in their order.
        var open: [(name: String, request: SuspendedRequest)] = []
        var count = 0
        var result: Result<JSONObject, any Error>?
        var notify: (@Sendable (RPCNotification) -> Void)?

        var outcome: Outcome? {
            if let result { return .completed(result) }
            var questions = JSONObject()
            for (name, request) in open {
                var question: JSONObject = ["method": .string(request.method)]
                question["params"] = request.params.map { .object($0) }
                questions[name] = .object(question)
            }
            return open.isEmpty ? nil : .inputRequired(questions)
        }

        mutating func remove(_ name: String) -> SuspendedRequest? {
            open.firstIndex { $0.name == name }.map { open.remove(at: $0).request }
        }
    }

    private let state: Mutex<State>
    /// A value for each change that may end the wait of the client.
    private let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// Completed by `abandon`.
    let abandoned = Promise<Void>()

    /// Creates a request with the notification handler of the client's HTTP request.
    init(notify: (@Sendable (RPCNotification) -> Void)? = nil) { state = Mutex(State(notify: notify)) }

    /// Sends a question to the client and returns the answer.
    func ask(_ request: SuspendedRequest) async -> Result<JSON, RPCError> {
        let name = state.withLock { state in
            state.count += 1
            state.open.append(("q\(state.count)", request))
            return "q\(state.count)"
        }
        change.yield()
        defer { _ = state.withLock { $0.remove(name) } }
        do { return try await request.answer() } catch {
            return .failure(.internalError("the client no longer waits for this request"))
        }
    }

    /// Takes the client's answers. A question without an answer is asked again.
    func provideAnswers(_ answers: JSONObject, notify: (@Sendable (RPCNotification) -> Void)?) {
        let answered = state.withLock { state in
            state.notify = notify
            return answers.members.compactMap { answer in state.remove(answer.name).map { ($0, answer.value) } }
        }
        for (request, answer) in answered { request.complete(.success(answer)) }
    }

    /// Returns the final result or the open questions. Cancelling the wait abandons the request.
    func next() async throws -> Outcome {
        while true {
            if let outcome = state.withLock({ $0.outcome }) { return outcome }
            var iterator = changes.makeAsyncIterator()
            // The end of the stream is the cancellation.
            guard await iterator.next() != nil else {
                abandon()
                throw CancellationError()
            }
        }
    }

    /// Ends the request, because the client will not continue it.
    func abandon() { abandoned.complete(.success(())) }

    /// Records the final result and returns it to a waiting client.
    func complete(_ result: Result<JSONObject, any Error>) {
        state.withLock { $0.result = result }
        change.yield()
    }

    /// Sends a notification to the client's current HTTP request.
    func send(_ notification: RPCNotification) { state.withLock { $0.notify }?(notification) }
}
