import Client
import JSON
import Model

/// Stands between an agent's client that speaks MCP over standard input and output, and a door of the broker.
///
/// Keeps nothing but what the handshake has agreed upon: each line becomes a POST, and what comes back becomes lines, in the
/// order in which it comes. A broker that restarts is waited for; lines that it has not got are sent when it is back, and
/// those whose answer was lost only if that does no harm.
struct MCPStdioBridge: Sendable {
    let door: MCPTarget
    let client: PatchbayClient
    let output: LineWriter
    var clock: any Clock<Duration> = ContinuousClock()
    /// For people: what has no place in an answer.
    let note: @Sendable (String) -> Void
    let desk = BridgeState()

    /// How long a broker is waited for that goes away; one that restarts is back much sooner.
    private static let patience = Duration.seconds(20)

    /// Returns when the input has ended and everything is answered.
    ///
    /// - Throws: `BrokenPipe`.
    func run(_ input: consuming LineReader) async throws {
        let (ended, end) = AsyncStream.makeStream(of: Never.self)
        try await withThrowingDiscardingTaskGroup { group in
            while let line = await input.next() {
                let message: ClientMessage
                do throws(JSONError) {
                    message = try ClientMessage(line)
                } catch {
                    try await output.write(LocalResponse.unreadable(error).bytes)
                    continue
                }
                if let fault = message.fault {
                    try await output.write(LocalResponse.invalid(fault).bytes)
                    continue
                }
                if let id = message.cancelled, await desk.isStateless(id) {
                    await desk.cancel(id)
                    continue
                }
                // The next one is sent when this one is: what a line is about may have to be there first.
                let (written, sign) = AsyncStream.makeStream(of: Never.self)
                let stopped = if let id = message.id { await desk.open(message, id) } else { AsyncStream<Never>?.none }
                group.addTask {
                    defer { sign.finish() }
                    // What follows the handshake needs what it gives.
                    let written: @Sendable () -> Void = { if !message.isInitialize { sign.finish() } }
                    try await until(stopped) { try await deliver(message, written) }
                    if let id = message.id { await desk.close(id) }
                }
                for await _ in written {}
                if let id = message.cancelled { await desk.cancel(id) }
                if message.method == "notifications/initialized" {
                    group.addTask { try await until(ended) { try await listen() } }
                }
            }
            end.finish()
            await desk.endSubscriptions()
        }
    }

    /// Runs the body until it has ended, or the stream has.
    private func until(_ stopped: AsyncStream<Never>?, _ body: @Sendable @escaping () async throws -> Void) async throws
    {
        guard let stopped else { return try await body() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(operation: body)
            group.addTask { for await _ in stopped {} }
            defer { group.cancelAll() }
            do { try await group.next() } catch is CancellationError {}
        }
    }

    /// Brings a message to the broker, and what comes back to the client; a request has an answer then.
    private func deliver(_ message: ClientMessage, _ written: () -> Void) async throws {
        var patience = Patience(message.isSubscription ? nil : Self.patience, clock: clock)
        var tracker = ResponseDeduplicator(message.id)
        while true {
            var isSent = false
            do {
                let post = message.post(in: await desk.session)
                try await client.exchange(post, at: door) {
                    isSent = true
                    written()
                } _: { reply in
                    try await take(reply, of: message, &tracker)
                }
                if message.isSubscription, !tracker.isAnswered, try await patience.wait() { continue }
                if let id = message.id, !tracker.isAnswered { try await write(LocalResponse.none(to: id)) }
                return
            } catch let error as ClientError {
                try Task.checkCancellation()
                if tracker.isAnswered { return }
                // Whoever says no has done nothing.
                if case .refused = error { isSent = false }
                let mayRepeat = !isSent || message.isRepeatable(at: door)
                if mayRepeat, error.isPassing {
                    if !patience.hasWaited { note("\(error); waiting for it") }
                    if try await patience.wait() { continue }
                }
                guard message.wantsAnswer else { return note("\(message.method ?? "an answer") was lost: \(error)") }
                return try await write(
                    mayRepeat
                        ? LocalResponse.failure(error, to: message.id) : LocalResponse.lost(message, id: message.id)
                )
            }
        }
    }

    private func take(_ reply: MCPStreamEvent, of message: ClientMessage, _ tracker: inout ResponseDeduplicator)
        async throws
    {
        switch reply {
        case .opened(let session):
            if message.isInitialize { await desk.began(session) }
        case .message(let bytes, let isLast):
            guard let json = tracker.take(bytes, isLast: isLast) else { return }
            if message.isInitialize, let json = json() { await desk.initialized(json) }
            try await output.write(bytes)
        case .refused(let status, let body):
            if let problem = LocalResponse.problem(body), problem.code == .unavailable {
                throw ClientError.refused(problem)
            }
            tracker.isAnswered = true
            if message.wantsAnswer {
                try await write(LocalResponse.refusal(status, body, to: message.id))
            } else {
                note("\(message.method ?? "an answer") was refused: \(LocalResponse.reason(status, body))")
            }
        }
    }

    /// Passes on what a server says by itself to a client of the handshake era, until the task is cancelled.
    private func listen() async throws {
        let session = await desk.session
        guard session.id != nil else { return }
        var patience = Patience(nil, clock: clock)
        var isWanted = true
        while isWanted {
            do {
                try await client.exchange(MCPMessage(body: nil, headers: session.headers), at: door) { reply in
                    switch reply {
                    case .opened: patience = Patience(nil, clock: clock)
                    case .message(let bytes, _): try await output.write(bytes)
                    // There is none, which is a server's right.
                    case .refused(let status, _): isWanted = status >= 500
                    }
                }
            } catch is ClientError {}
            if isWanted { _ = try await patience.wait() }
        }
    }

    private func write(_ answer: JSON) async throws { try await output.write(answer.bytes) }
}
