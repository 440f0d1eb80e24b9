import Client
import Model
import SystemIO

/// Forwards the messages of the client to the broker, and writes the responses. Ensures that a request gets a
/// response.
///
/// While the broker restarts, undelivered requests are retried. Requests with a lost response are retried only if they
/// are idempotent.
struct RequestForwarder: Sendable {
    let connector: ServerConnector
    let output: LineWriter
    let clock: any Clock<Duration>
    let log: @Sendable (String) -> Void
    let chooser: EndpointChooser

    private var session: BridgeSession { connector.session }
    private var resolver: TargetResolver { connector.resolver }

    /// The pauses between retries while the broker restarts.
    private static var retries: Backoff { Backoff(from: .milliseconds(20), to: .milliseconds(500)) }

    /// Delivers a message. Calls `written` when the next message may be sent.
    ///
    /// - Throws: `BrokenPipe`, `CancellationError`.
    func deliver(_ message: ClientMessage, _ written: @Sendable () -> Void) async throws {
        if message.isInitialize { session.update { $0.receivedHandshake(message) } }
        // A session that begins later needs no notification.
        if message.method == "notifications/initialized", session.current.pendingHandshake != nil { return }
        if try await answerLocally(message, written) { return }
        var backoff = Self.retries
        var deduplicator = ResponseDeduplicator(message.id)
        var message = message
        var hasRenewed = false
        while true {
            var isSent = false
            var target = MCPTarget.broker
            do {
                let client = try resolver.client()
                guard let found = try await chooser.target(of: message, client, written) else { return }
                (target, message) = (found, message.withoutAnswer)
                let server = MCPServerAddress(client: client, target: target)
                if !message.isInitialize { try await connector.beginSession(at: server) }
                let post = message.post(in: message.isInitialize ? MCPSessionInfo() : session.current.info)
                try await client.send(post, to: target) {
                    isSent = true
                    written()
                } _: { part in
                    try await handle(part, of: message, from: server, &deduplicator)
                }
                if message.isSubscription, !deduplicator.hasResponse {
                    try await backoff.wait(clock: clock)
                    continue
                }
                if let id = message.id, !deduplicator.hasResponse { try await write(LocalResponse.none(to: id)) }
                return
            } catch is UnknownSession where !hasRenewed {
                hasRenewed = true
                session.update { $0.endSession() }
            } catch  where !(error is BrokenPipe) {
                try Task.checkCancellation()
                if isSent { session.update { $0.connected() } }
                if deduplicator.hasResponse { return }
                // A rejected request was not executed and can be retried.
                if case ClientError.refused = error { isSent = false }
                let mayRepeat = !isSent || message.isRepeatable(at: target)
                if mayRepeat, mayRetry(message, after: error, waited: backoff.total) {
                    if backoff.total == .zero { log("\(error); retrying") }
                    try await backoff.wait(clock: clock)
                    continue
                }
                return try await fail(message, error, isLost: !mayRepeat)
            }
        }
    }

    private func mayRetry(_ message: ClientMessage, after error: any Error, waited: Duration) -> Bool {
        if message.isSubscription { return true }
        guard let error = error as? ClientError, error.isTemporary else { return false }
        return waited < session.current.retryLimit
    }

    /// Writes the response to a message that was not delivered, or whose result is lost.
    func fail(_ message: ClientMessage, _ error: any Error, isLost: Bool = false) async throws {
        let failure = CLIError(describing: error, command: "patchbay mcp")
        session.update { $0.failed(message, isLost: isLost) }
        guard message.expectsResponse else {
            let event = if case ClientError.refused = error { "rejected" } else { "lost" }
            return log("\(message.method ?? "a response") was \(event): \(failure.message)")
        }
        if isLost { return try await write(LocalResponse.lost(message, id: message.id)) }
        let response = BridgeServer.response(to: message, because: failure)
        try await write(response ?? LocalResponse.failure(failure, to: message.id))
    }

    private func handle(
        _ part: MCPResponsePart,
        of message: ClientMessage,
        from server: MCPServerAddress,
        _ deduplicator: inout ResponseDeduplicator
    ) async throws {
        switch part {
        case .opened(let id): session.update { $0.connected(message, sessionID: id) }
        case .message(let bytes, let isLast):
            guard let json = deduplicator.receive(bytes, isLast: isLast) else { return }
            if message.isInitialize, let json = json() { session.update { $0.initialized(json) } }
            if message.isSubscription, session.update({ $0.takePlaceholder() }) {
                try await output.write(bytes)
                return try await write(BridgeServer.toolsChanged(subscription: message.id))
            }
            guard message.method == "tools/list", deduplicator.hasResponse else { return try await output.write(bytes) }
            await resolver.didList(server.target)
            let alternatives = await resolver.alternatives(server.client)
            guard !alternatives.isEmpty, let json = json() else { return try await output.write(bytes) }
            try await write(BridgeTool.adding(alternatives, to: json))
        case .refused(let status, let body):
            if LocalResponse.problem(body) != nil || LocalResponse.isUnknownSession(status, body) {
                throw ServerConnector.error(status, body)
            }
            deduplicator.hasResponse = true
            if message.expectsResponse {
                try await write(LocalResponse.refusal(status, body, to: message.id))
            } else {
                log("\(message.method ?? "a response") was rejected: \(LocalResponse.reason(status, body))")
            }
        }
    }

    private func write(_ response: JSON) async throws { try await output.write(response.bytes) }
}

/// The tools of the bridge.
extension RequestForwarder {
    /// Answers a call of a tool of the bridge. Returns false for any other message.
    private func answerLocally(_ message: ClientMessage, _ written: () -> Void) async throws -> Bool {
        guard let id = message.id else { return false }
        do {
            switch message.tool {
            case BridgeTool.status:
                written()
                let server = try await connector.anyServer()
                try await connector.beginSession(at: server)
                _ = try await connector.response(to: message.request("tools/list", id: id), from: server)
                let text = "The tools are available now. List the tools again."
                try await write(BridgeServer.result(id, text, to: message))
            case BridgeTool.choose where isApp:
                // The next message waits, because it may be a call that needs the choice.
                let chosen = try await chooser.choose(message.params?["arguments"]?["endpoint"]?.string ?? "")
                let text = "Calls go to \(chosen) until the end of this session."
                try await write(BridgeServer.result(id, text, to: message))
            default: return false
            }
        } catch  where !(error is BrokenPipe || error is CancellationError) {
            try await fail(message, error)
        }
        return true
    }

    private var isApp: Bool {
        if case .app = resolver.subject { true } else { false }
    }
}
