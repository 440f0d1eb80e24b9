import Model
import NIOCore
package import NIOHTTP1

/// A client of the broker's HTTP API.
///
/// A stateless value. Each call uses its own connection, so a restart of the broker between two calls has no
/// effect. All calls throw `ClientError`. Cancelling the task aborts a call immediately.
package struct PatchbayClient: APIClient {
    package let address: BrokerAddress
    /// Time without received data after which a call fails.
    package let timeout: Duration
    /// Returns the token to send, read at each call. Nil when the kernel identifies the caller on the unix socket.
    private let token: @Sendable () -> AccessToken?
    /// TLS for a broker on another machine.
    private let security: (any ClientTransportSecurity)?
    /// The time for connect(2) to one address; nil for the idle timeout.
    private let connectTimeout: Duration?
    /// Headers of every request, in addition to those of the call.
    private let headers: [(name: String, value: String)]

    /// Idle timeout of event streams. The broker sends a comment every 15 s, so three are missing.
    static let streamTimeout = Duration.seconds(45)

    /// - Parameters:
    ///   - address: The broker.
    ///   - timeout: Idle timeout of ordinary calls. Probes and waiting calls add their own time.
    ///   - connectTimeout: The time for connect(2) to one address; nil for the idle timeout.
    ///   - security: TLS; required for a remote address.
    ///   - headers: Headers of every request, in addition to those of the call.
    ///   - token: Returns the token of the client's grant. Nil without one.
    package init(
        address: BrokerAddress,
        timeout: Duration = .seconds(10),
        connectTimeout: Duration? = nil,
        security: (any ClientTransportSecurity)? = nil,
        headers: [(name: String, value: String)] = [],
        token: @escaping @Sendable () -> AccessToken? = { nil }
    ) {
        if case .remote = address { precondition(security != nil, "a remote broker is reached over TLS only") }
        self.address = address
        self.token = token
        self.security = security
        self.headers = headers
        self.connectTimeout = connectTimeout
        self.timeout = timeout
    }

    package var activity: ActivityClient { ActivityClient(client: self) }
    package var advertisements: AdvertisementClient { AdvertisementClient(client: self) }
    package var approvals: ApprovalClient { ApprovalClient(client: self) }
    package var audit: AuditClient { AuditClient(client: self) }
    package var logs: LogClient { LogClient(client: self) }
    package var secrets: SecretClient { SecretClient(client: self) }
    package var streams: StreamClient { StreamClient(client: self) }
    package var team: TeamClient { TeamClient(client: self) }
    package var tunnels: TunnelClient { TunnelClient(client: self) }

    /// Returns a connection for one call with this idle timeout.
    package func connection(idleTimeout: Duration) -> HTTPConnection {
        HTTPConnection(
            address: address,
            idleTimeout: idleTimeout,
            connectTimeout: connectTimeout,
            token: token(),
            headers: headers,
            security: security
        )
    }

    /// Sends a request for an event stream, and handles its events until the broker ends it.
    func stream(_ request: OutgoingRequest, _ handle: (ServerSentEvent) async throws -> Void) async throws {
        var decoder = SSEDecoder(limit: HTTPConnection.bodyLimit)
        try await connection(idleTimeout: max(timeout, Self.streamTimeout)).perform(request) { buffer in
            for event in try decoder.events(in: buffer) { try await handle(event) }
        }
    }

    /// - Throws: `ClientError`, `CancellationError`.
    package func send(
        _ request: OutgoingRequest,
        extraTimeout: Duration,
        limit: Int
    ) async throws -> (headers: HTTPHeaders, bytes: [UInt8]) {
        var bytes: [UInt8] = []
        let headers = try await connection(idleTimeout: timeout + extraTimeout).perform(request) { buffer in
            bytes += buffer.readableBytesView
            guard bytes.count <= limit else {
                throw ClientError.invalidResponse(
                    what: "the answer to \(request.name)",
                    detail: "it is larger than \(limit) bytes"
                )
            }
        }
        return (headers, bytes)
    }
}
