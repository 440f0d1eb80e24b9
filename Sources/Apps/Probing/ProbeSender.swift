import Model
import NIOHTTP1
import Synchronization
import SystemIO

/// Sends probe requests, each on a connection of its own.
///
/// Some servers accept one client and drop the old one when another connects. So no request is sent to a port with an
/// open stream.
struct ProbeSender: Sendable {
    /// The result of one probe request.
    enum Reply {
        case response(ProbeHTTPRequest.Response)
        /// The response is not HTTP.
        case other
        /// The connection ended early, or the response was too large.
        case none
        case silence

        var response: ProbeHTTPRequest.Response? {
            if case .response(let response) = self { response } else { nil }
        }

        var isSilence: Bool { if case .silence = self { true } else { false } }
    }

    let dialer: any Dialer
    /// The maximum time for each request, including the dial.
    let timeout: Duration
    let clock: any Clock<Duration>
    /// Returns true if another stream to the route is open.
    let isInUse: @Sendable (Route) -> Bool

    /// Sends an HTTP request. `isExpected` is called on the established connection; if it returns false, nothing is sent.
    ///
    /// - Throws: `PortInUse`; `DialError` if the port accepted no connection in time; `CancellationError`.
    func send(
        _ request: ProbeHTTPRequest,
        to route: Route,
        within timeout: Duration? = nil,
        isExpected: @escaping @Sendable () async -> Bool = { true }
    ) async throws -> Reply {
        try await exchange(with: route, within: timeout ?? self.timeout) { connection in
            guard await isExpected() else { throw ProbeError.launchEnded }
            return try await request.run(over: connection)
        }
    }

    /// Sends a message to a server with one message per line.
    ///
    /// - Throws: `PortInUse`; `DialError` if the port accepted no connection in time; `CancellationError`.
    func send(_ line: LineExchange, to route: Route) async throws -> Reply {
        try await exchange(with: route, within: timeout) { connection in
            ProbeHTTPRequest.Response(status: 200, body: try await line.run(over: connection))
        }
    }

    private func exchange(
        with route: Route,
        within timeout: Duration,
        _ body: @escaping @Sendable (consuming Connection) async throws -> ProbeHTTPRequest.Response
    ) async throws -> Reply {
        guard !isInUse(route) else { throw PortInUse(route: route) }
        let isAccepted = Atomic(false)
        do {
            let response = try await withTimeout(timeout, clock: clock) { [dialer] in
                let connection = try await dialer.dial(route)
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
        } catch let error as HTTPParserError where error != .invalidEOFState {
            return .other
        } catch {
            return .none
        }
    }
}

/// The reason why a response does not identify the server.
enum ProbeError: Error, Equatable {
    case responseTooLarge
    case unexpectedEOF
    /// Another launch than the expected one may answer, so nothing was sent.
    case launchEnded
    /// The associated value is the reason.
    case notOpenAgents(String)
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
        case .response(let response): receive(ProfileResponse(response))
        case .other: fail("something that is not HTTP")
        case .none: fail("an incomplete response")
        case .silence: fail()
        }
    }
}

extension ProfileResponse {
    init(_ response: ProbeHTTPRequest.Response) {
        self.init(status: response.status, contentType: response.contentType, body: response.body)
    }
}
