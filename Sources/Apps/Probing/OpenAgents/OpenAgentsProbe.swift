package import Model
package import SystemIO

/// Asks OpenAgents servers for their names: one WebSocket connection with one `initialize` request.
package struct OpenAgentsProbe: Sendable {
    /// The maximum time that the server has to close the connection. The answer counts without that, too.
    private static let closeTimeout = Duration.milliseconds(500)

    private let dialer: any Dialer
    private let timeout: Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - dialer: Opens the connections.
    ///   - timeout: The maximum time from the dial to the answer.
    ///   - clock: The clock for the timeouts.
    package init(
        dialer: any Dialer,
        timeout: Duration = .seconds(5),
        clock: any Clock<Duration> = PollerClock()
    ) {
        self.dialer = dialer
        self.timeout = timeout
        self.clock = clock
    }

    /// Sends `initialize` and returns the name and version that the server reports, if it reports them.
    ///
    /// - Throws: `DialError` if the server is unreachable, too slow, or not an OpenAgents server; `CancellationError`.
    package func identify(_ route: Route) async throws -> ServerIdentity {
        do {
            let identity = try await withTimeout(timeout, clock: clock) { [self] in
                try await exchange(over: AppConnection(over: route, try await dialer.dial(route)))
            }
            if let identity { return identity }
            throw DialError(.timedOut, "\(route) did not answer initialize within \(timeout)")
        } catch let error as ExchangeError {
            throw DialError(.failed, "\(route) is not an OpenAgents server: \(Self.reason(error))")
        }
    }

    private static func reason(_ error: ExchangeError) -> String {
        switch error {
        case .invalid(let reason): reason
        case .tooLarge(let limit): "it sent more than \(limit) bytes"
        default: "it ended the connection before its answer"
        }
    }

    private func exchange(over connection: AppConnection) async throws -> ServerIdentity {
        let webSocket = WebSocketHandshake()
        let request = webSocket.request.bytes(host: connection.route.hostHeader)
        try await connection.send(request, within: timeout, clock: clock)
        var response = HTTPResponseParser(mayUpgrade: true)
        var frames = WebSocketDecoder(limit: OpenAgentsHandshake.byteLimit)
        var handshake = OpenAgentsHandshake()
        while true {
            let bytes = try await connection.receive()
            guard !bytes.isEmpty else { throw ExchangeError.interrupted }
            response.append(bytes)
            while let event = try Self.event(&response) {
                if case .head(let head) = event {
                    try webSocket.check(head)
                    try await send(.text, OpenAgentsHandshake.request.utf8, over: connection)
                }
                if case .body(let part) = event { frames.append(part) }
                while let frame = try frames.next() {
                    switch try handshake.receive(frame) {
                    case .wait: break
                    case .pong(let data): try await send(.pong, data, over: connection)
                    case .finished(let identity):
                        await close(connection)
                        return identity
                    }
                }
            }
        }
    }

    private static func event(
        _ response: inout HTTPResponseParser
    ) throws(ExchangeError) -> HTTPResponseParser.Event? {
        do { return try response.next() } catch { throw .invalid("its response is not HTTP") }
    }

    private func send(
        _ opcode: WebSocketFrame.Opcode,
        _ payload: some Collection<UInt8>,
        over connection: AppConnection
    ) async throws {
        try await connection.send(WebSocketFrame.masked(opcode, payload), within: timeout, clock: clock)
    }

    /// Sends a close frame with the status 1000, and waits until the server closes the connection (RFC 6455, section
    /// 7.1.1).
    private func close(_ connection: AppConnection) async {
        _ = try? await withTimeout(Self.closeTimeout, clock: clock) { [self] in
            try await send(.close, [0x03, 0xE8], over: connection)
            while try await !connection.receive().isEmpty {}
        }
    }
}
