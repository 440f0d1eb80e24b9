import Model
import Synchronization
import SystemIO

/// Sends probe requests, each on a connection of its own.
///
/// Some servers accept one client and drop the old one when another connects. So no request is sent to a port with an
/// open stream.
struct ProbeSender: Sendable {
    /// The result of one probe request.
    enum Reply {
        case response(AppResponse)
        /// The response is not HTTP.
        case other
        /// The connection ended early, or the response was too large.
        case none
        case silence

        var response: AppResponse? {
            if case .response(let response) = self { response } else { nil }
        }

        var isSilence: Bool { if case .silence = self { true } else { false } }
    }

    /// The maximum size of a response in bytes while a server is identified. A server that sends more is not one of the
    /// known servers.
    static let recognitionLimit = 64 * 1_024

    let dialer: any Dialer
    /// The maximum time for each request, including the dial.
    let timeout: Duration
    let clock: any Clock<Duration>
    /// Returns true if another stream to the route is open.
    let isInUse: @Sendable (Route) -> Bool

    /// Sends an HTTP request, whose response may have `limit` bytes. `isExpected` is called on the established
    /// connection; if it returns false, nothing is sent.
    ///
    /// - Throws: `PortInUse`; `DialError` if the port accepted no connection in time; `CancellationError`.
    func send(
        _ request: AppHTTPRequest,
        to route: Route,
        limit: Int = Self.recognitionLimit,
        within timeout: Duration? = nil,
        isExpected: @escaping @Sendable () async -> Bool = { true }
    ) async throws -> Reply {
        let limits = ResponseLimits(idle: timeout ?? self.timeout, total: timeout ?? self.timeout, bytes: limit)
        return try await exchange(with: route, within: limits.total) { [clock] connection in
            guard await isExpected() else { throw ExchangeError.notPermitted }
            var exchange = HTTPExchange(request, over: connection, limits: limits, clock: clock)
            return try await exchange.response()
        }
    }

    /// Sends a message to a server with one message per line.
    ///
    /// The response is the first line that contains a JSON object, starting at the object. iMCP sends heartbeats without
    /// a line end before it.
    ///
    /// - Throws: `PortInUse`; `DialError` if the port accepted no connection in time; `CancellationError`.
    func send(line: String, to route: Route) async throws -> Reply {
        try await exchange(with: route, within: timeout) { [timeout, clock] connection in
            try await connection.send(Array("\(line)\n".utf8), within: timeout, clock: clock)
            var decoder = LineDecoder(limit: Self.recognitionLimit)
            while true {
                let bytes = try await connection.receive()
                guard !bytes.isEmpty else { throw ExchangeError.interrupted }
                decoder.append(bytes)
                while let event = decoder.next() {
                    guard case .line(let line) = event else {
                        throw ExchangeError.tooLarge(limit: Self.recognitionLimit)
                    }
                    guard let start = line.firstIndex(of: UInt8(ascii: "{")) else { continue }
                    return AppResponse(status: 200, contentType: nil, body: Array(line[start...]))
                }
            }
        }
    }

    private func exchange(
        with route: Route,
        within timeout: Duration,
        _ body: @escaping @Sendable (AppConnection) async throws -> AppResponse
    ) async throws -> Reply {
        guard !isInUse(route) else { throw PortInUse(route: route) }
        let isAccepted = Atomic(false)
        do {
            let response = try await withTimeout(timeout, clock: clock) { [dialer] in
                let connection = AppConnection(over: route, try await dialer.dial(route))
                isAccepted.store(true, ordering: .releasing)
                return try await body(connection)
            }
            // An accepted connection without a response proves a listener. A dial that timed out does not.
            guard response != nil || isAccepted.load(ordering: .acquiring) else {
                throw DialError(.timedOut, "\(route) did not accept a connection within \(timeout)")
            }
            return response.map(Reply.response) ?? .silence
        } catch let failure as DialError {
            throw failure
        } catch let cancelled as CancellationError {
            throw cancelled
        } catch let error as ExchangeError {
            switch error {
            case .notHTTP, .invalid: return .other
            case .timedOut, .blocked: return .silence
            case .unwritten, .notPermitted, .interrupted, .tooLarge: return .none
            }
        }
    }
}

/// A port was not probed, because a tunnel, a call or a session has a stream to it.
package struct PortInUse: Error, Hashable, CustomStringConvertible {
    let route: Route

    package var description: String {
        "\(route) is in use by a tunnel, a call or a session; its server may accept one client only, so close that first"
    }
}

extension ProfileRecognizer {
    /// Processes the reply to `nextRequest`.
    mutating func receive(_ reply: ProbeSender.Reply) {
        switch reply {
        case .response(let response): receive(response)
        case .other: fail("something that is not HTTP")
        case .none: fail("an incomplete response")
        case .silence: fail()
        }
    }
}
