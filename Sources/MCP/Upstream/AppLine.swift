import JSON
import Model
import Pairing
import Sockets

/// The line to one app: what its server said when it was met, the streams that it keeps open, and how many requests may be
/// under way.
///
/// It tries once and says what came of it; whether to wait and try again is somebody else's business (`Hold`).
actor AppLine {
    /// One launch of the app, as far as it shows.
    struct Launch: Hashable, Sendable {
        let boot: Untrusted?
        let port: UInt16
    }

    /// Requests at once: AppReveal answers on the app's main thread. And how many may wait.
    static let width = 4
    static let queue = 64

    nonisolated let id: EndpointID
    private let dialer: any Dialer
    private let limits: UpstreamLimits
    private let clock: any Clock<Duration>
    private let watch: Stopwatch
    /// Takes what the app is to be told without anybody waiting.
    private let send: @Sendable (Errand) -> Void
    /// Takes what the app says has changed.
    private let tell: @Sendable (ServerChange) -> Void
    /// Gets what the app says of itself, once for each launch.
    private let met: @Sendable (AppIntroduction) async -> Void

    private nonisolated let gate = Gate(places: AppLine.width)
    private nonisolated let meeting = Gate(places: 1)
    private var introduction: (of: Launch, AppIntroduction)?
    private var idle: [IdleConnection] = []
    /// An errand is under way that closes idle streams.
    private var isTidying = false
    private var lastID = 0

    init(
        to id: EndpointID,
        dialer: any Dialer,
        limits: UpstreamLimits,
        clock: any Clock<Duration>,
        send: @escaping @Sendable (Errand) -> Void,
        tell: @escaping @Sendable (ServerChange) -> Void,
        met: @escaping @Sendable (AppIntroduction) async -> Void
    ) {
        self.id = id
        self.dialer = dialer
        self.limits = limits
        self.clock = clock
        self.send = send
        self.tell = tell
        self.met = met
        watch = Stopwatch(clock)
    }

    /// Asks once, by the best way that works; the parameters say which arguments are repeated as headers.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    func ask(
        _ request: AppRequest,
        of endpoint: Endpoint,
        by passages: [Passage],
        parameters: ParameterHeaders?
    ) async throws -> AppReply {
        guard gate.waiting < Self.queue else { throw Trouble.busy }
        let permit = try await gate.enter()
        defer { permit.giveBack() }
        do {
            return try await ask(request, endpoint, passages, parameters)
        } catch let trouble as Trouble {
            // Whatever answers there next may be another launch.
            if trouble.isDeparture { part() }
            throw trouble
        }
    }

    private func ask(
        _ request: AppRequest,
        _ endpoint: Endpoint,
        _ passages: [Passage],
        _ parameters: ParameterHeaders?
    ) async throws -> AppReply {
        var isSecond = false
        while true {
            let known = try await meet(endpoint, by: passages)
            let answer = try await put(request, known, passages, parameters)
            if !isSecond, Self.isMisfit(answer, known) {
                // Refused unheard: another server than the one that was met, or one that has forgotten the session.
                isSecond = true
                introduction = nil
                continue
            }
            return try Self.reply(answer, passages)
        }
    }

    /// What the app's server is; asked once for each launch.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    func meet(_ endpoint: Endpoint, by passages: [Passage]) async throws -> AppIntroduction {
        guard let first = passages.first else { throw Trouble.unreachable(Self.noRoute(to: endpoint)) }
        let launch = Launch(boot: endpoint.boot, port: first.route.port)
        if let introduction, introduction.of == launch { return introduction.1 }
        let permit = try await meeting.enter()
        defer { permit.giveBack() }
        if let introduction, introduction.of == launch { return introduction.1 }
        idle = []
        let known = try await introduce(endpoint.kind, endpoint.txt, by: passages)
        introduction = (launch, known)
        await met(known)
        return known
    }

    /// The app has gone; the next to come is met anew.
    func part() {
        introduction = nil
        idle = []
    }

    /// Tells the app something that is not answered.
    func tell(_ message: RPCMessage, by passages: [Passage]) async throws {
        guard let known = introduction?.1 else { return }
        let (method, params): (String, JSONObject) =
            if case .notification(let notification) = message {
                (notification.method, notification.params ?? [:])
            } else { ("", [:]) }
        _ = try await exchange(
            message.json,
            at: known.path,
            known.headers(for: method, params),
            passages,
            awaiting: nil,
            limits: .introduction
        )
    }

    /// Closes the streams that have been kept long enough.
    ///
    /// - Returns: Whether some are left, so that it has to be done again.
    func tidy() -> Bool {
        let now = watch.elapsed
        idle.removeAll { now - $0.since >= IdleConnection.lifetime }
        isTidying = !idle.isEmpty
        return isTidying
    }

    private func keep(_ connection: IdleConnection) {
        idle.append(connection)
        guard !isTidying else { return }
        isTidying = true
        send(.tidy(self))
    }

    private func put(
        _ request: AppRequest,
        _ known: AppIntroduction,
        _ passages: [Passage],
        _ parameters: ParameterHeaders?
    ) async throws -> UpstreamAnswer {
        lastID += 1
        let number = JSONNumber(lastID)
        var params = request.params
        var meta = known.meta(params["_meta"], capabilities: request.capabilities) ?? [:]
        if request.notify != nil { meta["progressToken"] = .number(number) }
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        var headers = known.headers(for: request.method, params)
        if known.revision.isStateless, let parameters { headers += parameters.headers(for: params["arguments"]) }
        let message = RPCRequest(
            id: .number(number),
            method: request.method,
            params: params.members.isEmpty ? nil : params
        )
        do {
            return try await exchange(
                RPCMessage.request(message).json,
                at: known.path,
                headers,
                passages,
                awaiting: .number(number),
                limits: limits,
                notify: request.notify
            )
        } catch {
            if !known.revision.isStateless, Self.isGivenUp(error) { cancel(number, passages) }
            throw error
        }
    }

    /// Before the stateless era closing the stream is no sign that the answer is not wanted any more.
    private func cancel(_ number: JSONNumber, _ passages: [Passage]) {
        let params: JSONObject = ["requestId": .number(number), "reason": "nobody waits for the answer any more"]
        let message = RPCNotification(method: "notifications/cancelled", params: params)
        send(.tell(self, .notification(message), passages))
    }

    /// One message over a kept stream or a new one.
    func exchange(
        _ message: JSON,
        at path: String,
        _ headers: [(name: String, value: String)],
        _ passages: [Passage],
        awaiting id: RPCID?,
        limits: UpstreamLimits,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) async throws -> UpstreamAnswer {
        var mayKeep = true
        while true {
            let (connection, passage, isKept) = try await connect(passages, mayKeep: mayKeep)
            let post = UpstreamPost(
                path: path,
                route: passage.route,
                secret: passage.secret,
                headers: headers,
                message: message
            )
            let listener = UpstreamListener(id, line: self, passages: passages, notify: notify, send: send, tell: tell)
            var exchange = UpstreamExchange(awaiting: id, limits: limits, clock: clock) { listener.heed($0) }
            do {
                let answer = try await exchange.run(post.bytes, over: connection)
                let kept = IdleConnection(connection, rest: exchange.rest, since: watch.elapsed)
                if kept.mayBecomeReady { keep(kept) }
                return answer
            } catch let trouble as Trouble where isKept && trouble == .unwritten {
                // The app had closed it; a new stream tells whether the app is there.
                mayKeep = false
            }
        }
    }

    private func connect(
        _ passages: [Passage],
        mayKeep: Bool
    ) async throws -> (UpstreamConnection, Passage, isKept: Bool) {
        if mayKeep, let passage = passages.first {
            while var kept = idle.popLast() {
                guard kept.connection.route == passage.route, watch.elapsed - kept.since < IdleConnection.lifetime
                else {
                    continue
                }
                if let connection = kept.take() { return (connection, passage, true) }
            }
        }
        var failures: [DialFailure] = []
        for passage in passages {
            do {
                let carrier = try await dialer.dial(passage.route)
                guard carrier.early.isEmpty else { throw Trouble.noMCP }
                return (UpstreamConnection(over: passage.route, carrier), passage, false)
            } catch let failure as DialFailure {
                failures.append(failure)
            }
            try Task.checkCancellation()
        }
        throw Trouble.unreachable(failures.first ?? DialFailure(.noRoute, "\(id) has no route now"))
    }
}
