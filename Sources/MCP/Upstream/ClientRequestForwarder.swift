import JSON
import Synchronization
import SystemIO

/// Asks a caller what an app wants to know while it works on that caller's request, and tells for how long that has held up
/// the answer: a person who thinks is no app that is silent.
final class ClientRequestForwarder: Sendable {
    /// How many of one request's questions may be open at a time.
    static let limit = 8
    /// JSON-RPC 2.0, section 5.1: what the one that was asked does not do.
    private static let refused = -32_601

    /// A question of an app's, on its way.
    struct Question: Sendable {
        let id: RPCID
        let method: String
        let params: JSONObject?
        let inquirer: ClientRequestForwarder
        /// Settled when the app does not want to know any more.
        let withdrawal: Promise<Void>
    }

    private struct State {
        var open: [RPCID: Promise<Void>] = [:]
        /// Since when something is open, by `watch`; how long something was, before that; and until when, the last time.
        var since = Duration.zero
        var held = Duration.zero
        var until = Duration.zero
        var isOver = false
    }

    /// How an answer is held up by questions.
    struct Pause: Sendable {
        var isOn = false
        /// Until now.
        var held = Duration.zero
        /// When the last one was closed; now, where one is open.
        var until = Duration.zero

        func and(_ other: Pause) -> Pause {
            Pause(isOn: isOn || other.isOn, held: held + other.held, until: max(until, other.until))
        }
    }

    private let wayBack: ClientRequester
    /// Whether what is asked belongs to one request, and ends with it.
    private let isBound: Bool
    let watch: ElapsedTimer
    private let state = Mutex(State())

    init(_ wayBack: ClientRequester, _ watch: ElapsedTimer, isBound: Bool = true) {
        self.wayBack = wayBack
        self.watch = watch
        self.isBound = isBound
    }

    /// One for the same client, for what belongs to none of its requests.
    var unbound: ClientRequestForwarder { ClientRequestForwarder(wayBack, watch, isBound: false) }

    var pause: Pause {
        let now = watch.elapsed
        return state.withLock { state in
            state.open.isEmpty
                ? Pause(held: state.held, until: state.until)
                : Pause(isOn: true, held: state.held + now - state.since, until: now)
        }
    }

    func ask(_ question: Question) async -> Result<JSON, RPCError> {
        await wayBack.ask(question.method, question.params, isBound)
    }

    /// Takes a request of an app.
    ///
    /// - Throws: What the app is answered, where the caller is not to be asked.
    func open(_ request: RPCRequest) throws(RPCError) -> Question {
        guard wayBack.faculties.allow(request.method, request.params) else {
            throw RPCError(Self.refused, "the client cannot be asked for \(request.method)")
        }
        let (withdrawal, now) = (Promise<Void>(), watch.elapsed)
        let isTaken = state.withLock { state in
            guard !state.isOver, state.open.count < Self.limit, state.open[request.id] == nil else { return false }
            if state.open.isEmpty { state.since = now }
            state.open[request.id] = withdrawal
            return true
        }
        guard isTaken else { throw .inside("\(Self.limit) questions at a time are the most that a request may have") }
        return Question(
            id: request.id,
            method: request.method,
            params: Self.withoutToken(request.params),
            inquirer: self,
            withdrawal: withdrawal
        )
    }

    func close(_ id: RPCID) {
        let now = watch.elapsed
        state.withLock { state in
            guard state.open.removeValue(forKey: id) != nil, state.open.isEmpty else { return }
            state.held += now - state.since
            state.until = now
        }
    }

    /// The app does not want to know it any more.
    func withdraw(_ id: RPCID) { state.withLock { $0.open[id] }?.settle(.success(())) }

    /// The request is over, and whatever is open with it.
    func end() {
        let open = state.withLock { state in
            state.isOver = true
            return state.open
        }
        for withdrawal in open.values { withdrawal.settle(.success(())) }
    }

    /// Progress of what a client is asked is not carried, and so not asked for.
    private static func withoutToken(_ params: JSONObject?) -> JSONObject? {
        guard var params, var meta = params["_meta"]?.object else { return params }
        meta["progressToken"] = nil
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        return params
    }
}

extension ClientRequestForwarder.Question {
    /// Asks, for no longer than the limit.
    ///
    /// - Returns: What the app is to be answered; nil when it does not want to know any more.
    func ask(within limit: Duration, clock: any Clock<Duration>) async -> Result<JSON, RPCError>? {
        try? await withThrowingTaskGroup(of: Result<JSON, RPCError>?.self) { group in
            group.addTask { await inquirer.ask(self) }
            group.addTask {
                try await clock.sleep(for: limit)
                return .failure(.inside("the client has not answered within \(limit.components.seconds) s"))
            }
            group.addTask {
                try await withdrawal.value()
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}

/// Whose requests run on a line that is one caller's alone: what the app asks beside them, on the stream of its own, is for
/// one of these.
final class ActiveForwarders: Sendable {
    private struct State {
        var all: [ClientRequestForwarder] = []
        /// For what is asked beside the requests, while any of them runs.
        var common: ClientRequestForwarder?
    }

    private let state = Mutex(State())

    var isEmpty: Bool { state.withLock { $0.all.isEmpty } }

    func enter(_ inquirer: ClientRequestForwarder) { state.withLock { $0.all.append(inquirer) } }

    /// With the last of the requests, what was asked beside them is over.
    func leave(_ inquirer: ClientRequestForwarder) {
        let common = state.withLock { state -> ClientRequestForwarder? in
            state.all.removeAll { $0 === inquirer }
            guard state.all.isEmpty else { return nil }
            defer { state.common = nil }
            return state.common
        }
        common?.end()
    }

    /// Who is asked beside the requests: they are all the same client's. Nil where nothing runs.
    var common: ClientRequestForwarder? {
        state.withLock { state in
            guard let last = state.all.last else { return nil }
            let common = state.common ?? last.unbound
            state.common = common
            return common
        }
    }

    /// For how long an answer is held up by what is asked beside the requests.
    var pause: ClientRequestForwarder.Pause { state.withLock { $0.common }?.pause ?? ClientRequestForwarder.Pause() }
}
