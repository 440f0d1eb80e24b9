import Client
import JSON
import Model
import SystemIO

/// Connects an MCP client on standard input and output to an MCP server of the broker.
///
/// Sends each line as a POST and writes each received message as a line, in the order of arrival. The only state is the
/// negotiated session and the pending requests. While the broker restarts, undelivered requests are retried. Requests
/// with a lost response are retried only if they are idempotent.
struct MCPStdioBridge: Sendable {
    let target: MCPTarget
    let client: PatchbayClient
    let output: LineWriter
    var clock: any Clock<Duration> = ContinuousClock()
    /// Receives messages for standard error.
    let log: @Sendable (String) -> Void
    let state = BridgeState()

    /// The pauses between retries while the broker restarts, and the limit for their sum.
    private static var retries: Backoff { Backoff(from: .milliseconds(20), to: .milliseconds(500)) }
    private static let retryTimeout = Duration.seconds(20)

    /// Runs until the input has ended and all requests have responses.
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
                if let id = message.cancelled, await state.isStateless(id) {
                    await state.cancel(id)
                    continue
                }
                // Lines are sent in order, because a message can depend on the previous message.
                let (written, continuation) = AsyncStream.makeStream(of: Never.self)
                let stopped =
                    if let id = message.id { await state.beginRequest(message, id) } else { AsyncStream<Never>?.none }
                group.addTask {
                    defer { continuation.finish() }
                    // The messages after `initialize` need the session ID of its response.
                    let written: @Sendable () -> Void = { if !message.isInitialize { continuation.finish() } }
                    try await until(stopped) { try await deliver(message, written) }
                    if let id = message.id { await state.endRequest(id) }
                }
                for await _ in written {}
                if let id = message.cancelled { await state.cancel(id) }
                if message.method == "notifications/initialized" {
                    group.addTask { try await until(ended) { try await listen() } }
                }
            }
            end.finish()
            await state.endSubscriptions()
        }
    }

    /// Runs the body and cancels the body when the stream finishes.
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

    /// Sends a message to the broker and writes the received messages. Ensures that a request gets a response.
    private func deliver(_ message: ClientMessage, _ written: () -> Void) async throws {
        var backoff = Self.retries
        var deduplicator = ResponseDeduplicator(message.id)
        while true {
            var isSent = false
            do {
                let post = message.post(in: await state.session)
                try await client.send(post, to: target) {
                    isSent = true
                    written()
                } _: { event in
                    try await handle(event, of: message, &deduplicator)
                }
                if message.isSubscription, !deduplicator.hasResponse {
                    try await backoff.wait(clock: clock)
                    continue
                }
                if let id = message.id, !deduplicator.hasResponse { try await write(LocalResponse.none(to: id)) }
                return
            } catch let error as ClientError {
                try Task.checkCancellation()
                if deduplicator.hasResponse { return }
                // A rejected request was not executed and can be retried.
                if case .refused = error { isSent = false }
                let mayRepeat = !isSent || message.isRepeatable(at: target)
                if mayRepeat, error.isTemporary {
                    if backoff.total == .zero { log("\(error); retrying") }
                    if message.isSubscription || backoff.total < Self.retryTimeout {
                        try await backoff.wait(clock: clock)
                        continue
                    }
                }
                guard message.expectsResponse else {
                    return log("\(message.method ?? "a response") was lost: \(error)")
                }
                return try await write(
                    mayRepeat
                        ? LocalResponse.failure(error, to: message.id) : LocalResponse.lost(message, id: message.id)
                )
            }
        }
    }

    private func handle(_ event: MCPResponsePart, of message: ClientMessage, _ deduplicator: inout ResponseDeduplicator)
        async throws
    {
        switch event {
        case .opened(let session):
            if message.isInitialize { await state.setSessionID(session) }
        case .message(let bytes, let isLast):
            guard let json = deduplicator.receive(bytes, isLast: isLast) else { return }
            if message.isInitialize, let json = json() { await state.initialized(json) }
            try await output.write(bytes)
        case .refused(let status, let body):
            if let problem = LocalResponse.problem(body), problem.code == .unavailable {
                throw ClientError.refused(problem)
            }
            deduplicator.hasResponse = true
            if message.expectsResponse {
                try await write(LocalResponse.refusal(status, body, to: message.id))
            } else {
                log("\(message.method ?? "a response") was rejected: \(LocalResponse.reason(status, body))")
            }
        }
    }

    /// Forwards the server's own messages (the GET stream of a session) until the task is cancelled.
    private func listen() async throws {
        let session = await state.session
        guard session.id != nil else { return }
        var backoff = Self.retries
        var isWanted = true
        while isWanted {
            do {
                try await client.send(OutgoingMCPMessage(body: nil, headers: session.headers), to: target) { event in
                    switch event {
                    case .opened: backoff.reset()
                    case .message(let bytes, _): try await output.write(bytes)
                    // A server may have no GET stream and answers 405.
                    case .refused(let status, _): isWanted = status >= 500
                    }
                }
            } catch is ClientError {}
            if isWanted { try await backoff.wait(clock: clock) }
        }
    }

    private func write(_ response: JSON) async throws { try await output.write(response.bytes) }
}
