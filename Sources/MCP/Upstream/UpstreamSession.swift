import AccessControl
import JSON
import Model
import SystemIO

/// The line to one app: what its server said when it was met, the streams that it keeps open, and how many requests may be
/// under way.
///
/// It tries once and says what came of it; whether to wait and try again is somebody else's business (`RetryPolicy`).
actor UpstreamSession {
    /// One launch of the app, as far as it shows.
    struct Launch: Hashable, Sendable {
        let boot: SanitizedText?
        let port: UInt16
    }

    /// Requests at once, of all callers and of one: AppReveal answers on the app's main thread. And how many of one may wait.
    static let width = 8
    static let share = 4
    static let queue = 64

    nonisolated let id: EndpointID
    let dialer: any Dialer
    let limits: UpstreamLimits
    let listening: UpstreamLimits
    let clock: any Clock<Duration>
    let watch: ElapsedTimer
    /// Takes what the app is to be told without anybody waiting.
    let send: @Sendable (BackgroundTask) -> Void
    /// Takes what the app says has changed.
    let tell: @Sendable (ServerChange) -> Void
    /// Whose requests run, where it is one caller's alone.
    nonisolated let inquirers = ActiveForwarders()
    /// What is said to the app of the one caller whose line it is; nil for a line of everybody's.
    let own: ClientSessionParameters?
    let probe: IdentityProbe
    /// Gets what is found out about which app answers.
    let identified: @Sendable (IdentityReport) async -> Void
    /// Gets what the app says of itself, once for each launch.
    private let met: @Sendable (ServerInfo) async -> Void

    private var turns = FairQueue<Promise<Void>>(
        places: UpstreamSession.width,
        share: UpstreamSession.share,
        queue: UpstreamSession.queue
    )
    private nonisolated let meeting = AsyncSemaphore(places: 1)
    var introduction: (of: Launch, met: ServerInfo)?
    var idle: [PooledConnection] = []
    /// The stream of a server that takes lines; what was met is met on it.
    var lines: LineTransport?
    /// An errand is under way that closes idle streams.
    var isTidying = false
    var lastID = 0
    /// Addresses of resources about which the app is asked to tell.
    var addresses: Set<String> = []
    /// From which level on the one caller wants log messages, where it has said so.
    var logLevel: JSON?
    /// The session of the one caller whose stream is read; settled when it is not to be any more.
    var attendance: (session: String, end: Promise<Void>)?
    /// The launch that gives nobody a session, so that nobody needs a line alone.
    var withoutSessions: Launch?
    /// When an answer came last, and how many requests are under way.
    var lastHeard: Duration?
    var underWay = 0
    /// Settled when the stream on which the app tells of changes has to be another one.
    var renewal: Promise<Void>?

    init(
        to id: EndpointID,
        dialer: any Dialer,
        limits: UpstreamLimits,
        listening: UpstreamLimits,
        clock: any Clock<Duration>,
        send: @escaping @Sendable (BackgroundTask) -> Void,
        tell: @escaping @Sendable (ServerChange) -> Void,
        own: ClientSessionParameters? = nil,
        probe: IdentityProbe,
        identified: @escaping @Sendable (IdentityReport) async -> Void,
        met: @escaping @Sendable (ServerInfo) async -> Void
    ) {
        self.id = id
        self.dialer = dialer
        self.limits = limits
        self.listening = listening
        self.clock = clock
        self.send = send
        self.tell = tell
        self.own = own
        self.probe = probe
        self.identified = identified
        self.met = met
        watch = ElapsedTimer(clock)
    }

    /// Asks once, by the best way that works; the traits are those of the tool, if one is called. Callers of the same holder
    /// take turns with those of others.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    func ask(
        _ request: MCPRequest,
        of endpoint: Endpoint,
        by admission: Admission,
        _ traits: ToolAnnotations
    ) async throws -> AppReply {
        let (holder, end) = (admission.holder, watch.elapsed + admission.limit)
        let isQueued = !turns.enter(holder)
        if isQueued { try await queueUp(holder, admission) }
        defer { leave(holder) }
        do {
            if isQueued { try admission.check() }
            return try await ask(request, endpoint, admission, traits, until: end)
        } catch let trouble as Trouble {
            // Whatever answers there next may be another launch.
            if trouble.isDeparture { part() }
            throw trouble
        }
    }

    private func queueUp(_ holder: String, _ admission: Admission) async throws {
        guard !turns.isFull(for: holder) else { throw Trouble.busy }
        let turn = Promise<Void>()
        turns.wait(turn, for: holder)
        do { try await admission.wait(for: turn, clock: clock) } catch {
            turns.withdraw(holder) { $0 === turn }
            throw error
        }
    }

    private func leave(_ holder: String) {
        turns.leave(holder)
        while let (turn, next) = turns.next() {
            // One that was cancelled meanwhile is passed over.
            if !turn.settle(.success(())) { turns.leave(next) }
        }
    }

    private func ask(
        _ request: MCPRequest,
        _ endpoint: Endpoint,
        _ admission: Admission,
        _ traits: ToolAnnotations,
        until end: Duration
    ) async throws -> AppReply {
        let passages = admission.passages
        var isSecond = false
        while true {
            let known = try await meet(endpoint, by: passages, until: end)
            if let reply = subscribe(request, known) { return reply }
            await attend(known, passages)
            let answer = try await put(request, known, admission, traits, until: end)
            let misfit = Self.misfit(of: answer, known)
            // Another server than the one that was met, or one that has forgotten the session.
            if misfit != nil, introduction?.met == known { introduction = nil }
            // A call is sent again only where the protocol says that it was not processed.
            if !isSecond, misfit == .unprocessed || misfit == .perhaps && request.tool == nil {
                isSecond = true
                continue
            }
            let reply = try Self.reply(answer, passages)
            note(request, reply)
            return reply
        }
    }

    /// What the app's server is; asked once for each launch.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    func meet(_ endpoint: Endpoint, by passages: [AuthorizedRoute]) async throws -> ServerInfo {
        guard let first = passages.first else { throw Trouble.unreachable(Self.noRoute(to: endpoint)) }
        let launch = Launch(boot: endpoint.boot, port: first.route.port)
        if let known = await known(launch, passages), isFresh { return known }
        let permit = try await meeting.enter()
        defer { permit.giveBack() }
        let earlier = await known(launch, passages)
        if let earlier, isFresh { return earlier }
        let known: ServerInfo
        do {
            try await identify(endpoint, passages)
            if let earlier {
                try await compareName(of: earlier, isNew: false, endpoint, passages)
                lastHeard = watch.elapsed
                return earlier
            }
            part()
            known = try await introduce(endpoint, by: passages)
            try await compareName(of: known, isNew: true, endpoint, passages)
            lastHeard = watch.elapsed
        } catch Trouble.silent(let seconds) {
            throw Trouble.mute(seconds: seconds)
        }
        introduction = (launch, known)
        await met(known)
        return known
    }

    /// The same, for no longer than the caller allows.
    private func meet(
        _ endpoint: Endpoint,
        by passages: [AuthorizedRoute],
        until end: Duration
    ) async throws -> ServerInfo {
        if let first = passages.first,
            let known = await known(Launch(boot: endpoint.boot, port: first.route.port), passages), isFresh
        {
            return known
        }
        let left = end - watch.elapsed
        let known = try await withDeadline(left, clock: clock) { try await self.meet(endpoint, by: passages) }
        guard let known else { throw Trouble.mute(seconds: Int(left.components.seconds)) }
        return known
    }

    /// What was met, if it can still be spoken to as it was met.
    private func known(_ launch: Launch, _ passages: [AuthorizedRoute]) async -> ServerInfo? {
        guard let introduction, introduction.of == launch, await isStanding(introduction.met, passages) else {
            return nil
        }
        return introduction.met
    }

    /// The app has gone; the next to come is met anew.
    func part() {
        lastHeard = nil
        introduction = nil
        idle = []
        lines = nil
    }

    private func put(
        _ request: MCPRequest,
        _ known: ServerInfo,
        _ admission: Admission,
        _ traits: ToolAnnotations,
        until end: Duration
    ) async throws -> UpstreamResponse {
        let passages = admission.passages
        lastID += 1
        let number = JSONNumber(lastID)
        var params = request.params
        var meta =
            known.meta(params["_meta"], capabilities: request.capabilities, logLevel: request.logLevel) ?? [:]
        if request.notify != nil { meta["progressToken"] = .number(number) }
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        var headers = known.headers(for: request.method, params)
        if known.revision.isStateless { headers += traits.parameters.headers(for: params["arguments"]) }
        let message = RPCRequest(
            id: .number(number),
            method: request.method,
            params: params.members.isEmpty ? nil : params
        )
        let inquirer = own == nil ? nil : request.wayBack.map { ClientRequestForwarder($0, watch) }
        if let inquirer { inquirers.enter(inquirer) }
        defer {
            if let inquirer {
                inquirers.leave(inquirer)
                inquirer.end()
            }
        }
        var limits = limits
        limits.silence = request.patience ?? limits.silence
        limits.longest = min(limits.longest, end - watch.elapsed)
        underWay += 1
        defer { underWay -= 1 }
        do {
            let answer = try await exchange(
                RPCMessage.request(message).json,
                at: known.place,
                headers,
                passages,
                awaiting: .number(number),
                limits: limits,
                admission: admission,
                mayKeep: request.mayRepeat(traits),
                inquirer: inquirer,
                notify: request.notify
            )
            lastHeard = watch.elapsed
            return answer
        } catch {
            if known.place == .lines || !known.revision.isStateless, Self.isGivenUp(error) { cancel(number, passages) }
            throw error
        }
    }

    /// Before the stateless era, and where all go over one stream, closing it is no sign that the answer is not wanted any more.
    func cancel(_ number: JSONNumber, _ passages: [AuthorizedRoute]) {
        let params: JSONObject = ["requestId": .number(number), "reason": "nobody waits for the answer any more"]
        let message = RPCNotification(method: "notifications/cancelled", params: params)
        send(.tell(self, .notification(message), passages))
    }
}
