import Client
import Model
import SystemIO

/// Connects an MCP client on standard input and output to an MCP server of the broker.
///
/// Sends each line as a POST and writes each received message as a line, in the order of arrival. The state is the
/// negotiated session, the pending requests, and the endpoint that was chosen for an app. `RequestForwarder` has the
/// rules for retries.
struct MCPStdioBridge: Sendable {
    private let connector: ServerConnector
    private let forwarder: RequestForwarder
    private let output: LineWriter
    private let clock: any Clock<Duration>

    /// The pauses between attempts to read the server's own messages.
    private static var retries: Backoff { Backoff(from: .milliseconds(20), to: .seconds(2)) }
    /// The limit for a response of the broker to `initialize`. Codex gives up after 10 s (`startup_timeout_sec`).
    private static let startLimit = Duration.seconds(5)

    /// - Parameters:
    ///   - resolver: Finds the server of each request.
    ///   - output: Receives the messages for the client.
    ///   - clock: Measures the pauses between retries.
    ///   - log: Receives messages for standard error.
    init(
        resolver: TargetResolver,
        output: LineWriter,
        clock: any Clock<Duration> = ContinuousClock(),
        log: @escaping @Sendable (String) -> Void
    ) {
        connector = ServerConnector(resolver: resolver)
        forwarder = RequestForwarder(
            connector: connector,
            output: output,
            clock: clock,
            log: log,
            chooser: EndpointChooser(connector: connector, output: output)
        )
        self.output = output
        self.clock = clock
    }

    private var session: BridgeSession { connector.session }

    /// Runs until the input has ended and all requests have responses. If the client closes the output before that, cancels
    /// all requests, because no response can arrive any more.
    ///
    /// - Throws: `BrokenPipe`.
    func run(_ input: LineInput) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await serve(input)
                return true
            }
            group.addTask {
                try await output.waitForClose()
                return false
            }
            defer { group.cancelAll() }
            while let isServed = try await group.next(), !isServed {}
        }
    }

    private func serve(_ input: LineInput) async throws {
        var input = input
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
                if let id = message.responseID, session.update({ $0.answer(id, message.json) }) { continue }
                if let id = message.cancelled, session.current.isStateless(id) {
                    session.current.cancel(id)
                    continue
                }
                // Lines are sent in order, because a message can depend on the previous message.
                let (written, continuation) = AsyncStream.makeStream(of: Never.self)
                let stopped = message.id.map { id in session.update { $0.beginRequest(message, id) } }
                group.addTask {
                    defer { continuation.finish() }
                    // The messages after `initialize` need the session ID of its response.
                    let written: @Sendable () -> Void = { if !message.isInitialize { continuation.finish() } }
                    try await until(stopped) { try await deliver(message, written) }
                    if let id = message.id { session.update { $0.endRequest(id) } }
                }
                for await _ in written {}
                if let id = message.cancelled { session.current.cancel(id) }
                if message.method == "notifications/initialized" {
                    group.addTask { try await until(ended) { try await listen() } }
                }
            }
            end.finish()
            session.update { $0.endInput() }
        }
    }

    /// Delivers a message. The first one gets a response soon, because clients give up on a server that is silent.
    private func deliver(_ message: ClientMessage, _ written: @escaping @Sendable () -> Void) async throws {
        guard ["initialize", "server/discover"].contains(message.method) else {
            return try await forwarder.deliver(message, written)
        }
        let isDelivered = try await withTimeout(Self.startLimit, clock: clock) {
            try await forwarder.deliver(message, written)
            return true
        }
        guard isDelivered == nil, !session.current.hasSession else { return }
        let silence = ClientError.timedOut(what: message.method ?? "", seconds: 5)
        try await forwarder.fail(message, silence)
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

    /// Forwards the server's own messages (the GET stream of a session) until the task is cancelled. Tells the client to
    /// list the tools again when the broker, the app or another phone is available.
    private func listen() async throws {
        var backoff = Self.retries
        while true {
            _ = session.update { $0.takeOpenedStream() }
            do {
                let server = try await connector.anyServer()
                try await connector.beginSession(at: server)
                let hasPlaceholder = session.update { $0.takePlaceholder() }
                let isStale = await connector.resolver.takeStaleList(for: server.target)
                if hasPlaceholder || isStale { try await output.write(BridgeServer.toolsChanged().bytes) }
                guard session.current.info.id != nil else { return }
                let choice = await connector.resolver.choiceChange()
                try await until(choice) { try await forwardMessages(of: server) }
            } catch is UnknownSession {
                session.update { $0.endSession() }
            } catch is UnsupportedStream {
                return
            } catch is ClientError {
            } catch is CLIError {}
            if session.update({ $0.takeOpenedStream() }) { backoff.reset() }
            try await backoff.wait(clock: clock)
        }
    }

    /// The server has no GET stream.
    private struct UnsupportedStream: Error {}

    private func forwardMessages(of server: MCPServerAddress) async throws {
        let headers = session.current.info.headers
        try await server.client.send(OutgoingMCPMessage(body: nil, headers: headers), to: server.target) { event in
            switch event {
            case .opened: session.update { $0.streamOpened() }
            case .message(let bytes, _): try await output.write(bytes)
            case .refused(405, _): throw UnsupportedStream()
            case .refused(let status, let body): throw ServerConnector.error(status, body)
            }
        }
    }
}
