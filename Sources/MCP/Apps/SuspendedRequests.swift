import JSON
import Synchronization
import SystemIO

/// A request on its way through an app that may ask meanwhile, for a caller that takes a question as a result and asks again
/// with the answer (2026-07-28, multi round-trip requests). The app waits in between.
final class SuspendedRequest: Sendable {
    /// What the caller gets next.
    enum Turn: Sendable {
        case ended(Result<JSONObject, any Error>)
        /// Questions under the names that the answers have to have.
        case asked(JSONObject)
    }

    private struct Question {
        let name: String
        let request: JSON
        let answer: Promise<Result<JSON, RPCError>>
    }

    private struct State {
        var questions: [Question] = []
        var count = 0
        var ended: Result<JSONObject, any Error>?
        var waiter: Promise<Turn>?
        var notify: (@Sendable (RPCNotification) -> Void)?
    }

    private let state = Mutex(State())
    /// Settled when nobody will come back for the rest.
    let abandonment = Promise<Void>()

    /// Brings a question to the caller, and the answer back.
    func ask(_ method: String, _ params: JSONObject?) async -> Result<JSON, RPCError> {
        let answer = Promise<Result<JSON, RPCError>>()
        var request: JSONObject = ["method": .string(method)]
        request["params"] = params.map { .object($0) }
        let question = JSON.object(request)
        let (name, waiter, turn) = state.withLock { state in
            state.count += 1
            let name = "q\(state.count)"
            state.questions.append(Question(name: name, request: question, answer: answer))
            defer { state.waiter = nil }
            return (name, state.waiter, Self.turn(of: state.questions))
        }
        waiter?.settle(.success(turn))
        defer { state.withLock { $0.questions.removeAll { $0.name == name } } }
        do { return try await answer.value() } catch { return .failure(.inside("nobody waits for this any more")) }
    }

    /// Takes the answers to what was asked; what has none is asked again.
    func take(_ answers: JSONObject, notify: (@Sendable (RPCNotification) -> Void)?) {
        let settled = state.withLock { state in
            state.notify = notify
            let settled = state.questions.compactMap { question in
                answers[question.name].map { (question.answer, $0) }
            }
            state.questions.removeAll { answers[$0.name] != nil }
            return settled
        }
        for (promise, answer) in settled { promise.settle(.success(.success(answer))) }
    }

    /// What comes next: the end, or a question. Whoever waits for it and goes away has called everything off.
    func next() async throws -> Turn {
        let waiter = Promise<Turn>()
        let turn = state.withLock { state -> Turn? in
            if let ended = state.ended { return .ended(ended) }
            if !state.questions.isEmpty { return Self.turn(of: state.questions) }
            state.waiter = waiter
            return nil
        }
        if let turn { return turn }
        do { return try await waiter.value() } catch {
            abandonment.settle(.success(()))
            throw error
        }
    }

    func end(_ result: Result<JSONObject, any Error>) {
        let waiter = state.withLock { state in
            state.ended = result
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.settle(.success(.ended(result)))
    }

    func follow(_ notify: (@Sendable (RPCNotification) -> Void)?) { state.withLock { $0.notify = notify } }

    /// Told to the request of the caller's that runs at the moment.
    func tell(_ notification: RPCNotification) { state.withLock { $0.notify }?(notification) }

    private static func turn(of questions: [Question]) -> Turn {
        var requests = JSONObject()
        for question in questions { requests[question.name] = question.request }
        return .asked(requests)
    }
}

/// The requests that wait in an app for the answers of those who made them.
struct SuspendedRequestStore: Sendable {
    /// What a request must be to go on with one that waits.
    struct Subject: Hashable, Sendable {
        let holder: String
        let endpoint: String
        let method: String
        /// What was asked for, as a text, without what belongs to the asking.
        let params: String
    }

    private struct Entry: Sendable {
        let subject: Subject
        let interview: SuspendedRequest
        let since: Duration
    }

    /// How many may wait, of one user or grant and altogether; and how long.
    static let limitOfOne = 8
    static let limit = 64
    static let lifetime = Duration.seconds(300)
    /// Tells our states from apps' own.
    static let prefix = "patchbay-"

    private var entries: [String: Entry] = [:]

    /// Keeps a request until its caller comes back with what this gives: 128 bits that nobody can guess. What has waited for
    /// too long is given back, to be given up.
    ///
    /// - Throws: When there are too many.
    mutating func keep(
        _ interview: SuspendedRequest,
        _ subject: Subject,
        at now: Duration
    ) throws(RPCError) -> (key: String, old: [SuspendedRequest]) {
        let old = entries.filter { now - $0.value.since >= Self.lifetime }
        for key in old.keys { entries[key] = nil }
        guard entries.count < Self.limit,
            entries.values.count(where: { $0.subject.holder == subject.holder }) < Self.limitOfOne
        else { throw .inside("too many requests wait for answers: \(Self.limitOfOne) are the most for one caller") }
        let key = Self.prefix + SessionIDSigner.randomText()
        entries[key] = Entry(subject: subject, interview: interview, since: now)
        return (key, old.values.map(\.interview))
    }

    /// The request that waits under that key; each time once, and only for the same request of the same caller.
    mutating func take(_ key: String, _ subject: Subject) throws(RPCError) -> SuspendedRequest {
        guard let entry = entries[key], entry.subject == subject else {
            throw .invalidParams(
                "no request like this one waits under this requestState any more: make it anew without one"
            )
        }
        entries[key] = nil
        return entry.interview
    }
}
