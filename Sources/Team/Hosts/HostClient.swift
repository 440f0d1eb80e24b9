import Client
import Model
import NIOCore
import NIOHTTP1
import Synchronization
import SystemIO

/// Sends requests to the brokers of other hosts of the team, over connections that stay open for the next request.
///
/// A TLS handshake takes longer than a whole request, so a connection serves many requests.
final class HostClient: Sendable {
    /// The time without a request after which a connection is not used again. The other broker closes it after 60 s.
    private static let lifetime = Duration.seconds(45)
    /// The maximum number of idle connections per host.
    private static let maxIdle = 8
    /// The time for a connection to one address, with its handshake.
    private static let connectTimeout = Duration.seconds(5)

    private struct State {
        var idle: [HostName: [HostConnection]] = [:]
        /// The address that worked last.
        var preferred: [HostName: BrokerAddress] = [:]
    }

    private let state = Mutex(State())
    private let security: @Sendable (HostName) -> any ClientTransportSecurity
    private let addresses: MemberAddressCheck

    /// - Parameters:
    ///   - addressRefusal: Returns the reason why a numeric address cannot be that of another host; nil if it can be.
    ///   - security: Returns the TLS of connections to one host. The handshake fails unless the broker has a certificate
    ///     of the team with the name of the host, and the pinned key.
    init(
        addressRefusal: @escaping @Sendable (_ address: String) -> String?,
        security: @escaping @Sendable (HostName) -> any ClientTransportSecurity
    ) {
        self.security = security
        addresses = MemberAddressCheck(refusal: addressRefusal)
    }

    /// Sends a request, and waits for the head of its response.
    ///
    /// An idle connection may have ended just now. The request is then sent once more, if the other broker cannot have
    /// executed it, or if a second execution changes nothing. A request without an answer within its time limit is not
    /// sent again: the other broker hangs.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - address: The other broker.
    ///   - timeout: The time without a part of the response after which the request fails.
    /// - Returns: The response, which the caller must close.
    /// - Throws: `HostError`, `CancellationError`.
    func send(
        _ request: OutgoingRequest,
        to address: MemberAddress,
        within timeout: Duration
    ) async throws -> MemberResponse {
        let host = address.host
        let head = request.head(host: host.text)
        let body = request.body ?? []
        while let connection = takeIdle(to: address) {
            do {
                let parts = try await connection.exchange(head, body: body, within: timeout)
                return try response(over: connection, parts, within: timeout)
            } catch let end as ResponseReader.End {
                connection.close()
                // The other idle connections take the same time to fail.
                if !end.isUnprocessed { closeIdle(to: host) }
                try Task.checkCancellation()
                if case .timedOut = end { throw end.error(of: host, after: timeout) }
                guard request.isIdempotent || end.isUnprocessed else { throw HostError.responseLost(host) }
            }
        }
        return try await first(of: address, isSent: true) { broker in
            let http = broker.connection(idleTimeout: Self.connectTimeout)
            let connection = try await connect(to: address, over: http, for: request)
            do {
                try await send(head, body: body, over: connection, at: http.address)
                return try response(over: connection, try await connection.next(within: timeout), within: timeout)
            } catch let end as ResponseReader.End {
                connection.close()
                try Task.checkCancellation()
                // No `ClientError`, because the other addresses lead to the same broker.
                if case .timedOut = end { throw end.error(of: host, after: timeout) }
                guard case .broken(let error?) = end else { throw ClientError.connectionLost(what: request.name) }
                throw http.failure(ofRemote: error, request) ?? .connectionLost(what: request.name)
            }
        }
    }

    /// Opens a stream through the broker of another host. Each stream is a connection of its own.
    ///
    /// - Parameters:
    ///   - target: The target, with the IDs of that broker.
    ///   - address: The other broker.
    ///   - headers: The headers of the request.
    /// - Returns: The stream.
    /// - Throws: `HostError`; `ClientError.refused` by the other broker; `CancellationError`, `SocketError`.
    func openStream(
        to target: TunnelTarget,
        at address: MemberAddress,
        headers: [(name: String, value: String)]
    ) async throws -> Connection {
        try await first(of: address, isSent: false, headers: headers) { try await $0.streams.open(to: target) }
    }

    /// Sends the first request of a connection, whose TLS handshake must end within the limit.
    ///
    /// - Throws: `ResponseReader.End`, `CancellationError`, `ClientError.unreachable`.
    private func send(
        _ head: HTTPRequestHead,
        body: [UInt8],
        over connection: HostConnection,
        at address: BrokerAddress
    ) async throws {
        let isSent = try await withTimeout(Self.connectTimeout, clock: .continuous) {
            try await connection.send(head, body: body)
            return true
        }
        guard isSent == nil else { return }
        connection.close()
        let reason = "no TLS handshake for \(Self.connectTimeout.components.seconds) s"
        throw ClientError.unreachable(address: address.description, reason: reason)
    }

    private func response(
        over connection: HostConnection,
        _ parts: [HTTPClientResponsePart],
        within timeout: Duration
    ) throws(ResponseReader.End) -> MemberResponse {
        try MemberResponse(over: connection, parts, within: timeout) { [weak self] in self?.add($0) }
    }

    private func takeIdle(to address: MemberAddress) -> HostConnection? {
        state.withLock { state in
            while let connection = state.idle[address.host]?.popLast() {
                if connection.address.key == address.key, connection.idleTime < Self.lifetime { return connection }
                connection.close()
            }
            return nil
        }
    }

    /// Keeps a connection for the next request.
    private func add(_ connection: HostConnection) {
        connection.becameIdle()
        let surplus = state.withLock { state -> HostConnection? in
            state.idle[connection.address.host, default: []].append(connection)
            guard state.idle[connection.address.host]?.count ?? 0 > Self.maxIdle else { return nil }
            return state.idle[connection.address.host]?.removeFirst()
        }
        surplus?.close()
    }

    /// Closes the idle connections of a host.
    func closeIdle(to host: HostName) {
        let closed = state.withLock { state in
            state.preferred[host] = nil
            return state.idle.removeValue(forKey: host) ?? []
        }
        for connection in closed { connection.close() }
    }

    private func connect(
        to address: MemberAddress,
        over http: HTTPConnection,
        for request: OutgoingRequest
    ) async throws -> HostConnection {
        let (channel, reader) = try await http.connect(for: request) { channel in
            (channel, try HostConnection.addHandlers(to: channel))
        }
        return HostConnection(to: address, over: channel, reader)
    }

    /// Tries the addresses of a host in order, beginning with the one that worked last, and those of a name in turn.
    ///
    /// - Parameters:
    ///   - address: The other broker.
    ///   - isSent: True if the other broker may execute a request without a response.
    ///   - headers: The headers of each request.
    ///   - body: Sends the request to one address.
    /// - Returns: The value of `body`.
    /// - Throws: The error of the last address as `HostError`; `ClientError.refused`; other errors of `body`.
    private func first<Value: ~Copyable & Sendable>(
        of address: MemberAddress,
        isSent: Bool,
        headers: [(name: String, value: String)] = [],
        _ body: (PatchbayClient) async throws -> Value
    ) async throws -> Value {
        let preferred = state.withLock { $0.preferred[address.host] }
        let brokers = address.brokers.filter { $0 == preferred } + address.brokers.filter { $0 != preferred }
        var failure = ClientError.unreachable(address: "\(address.host)", reason: "it publishes no address")
        for broker in brokers {
            let targets: [BrokerAddress]
            do throws(ClientError) { targets = try await addresses.targets(of: broker) } catch {
                failure = error
                continue
            }
            for target in targets {
                let client = PatchbayClient(
                    address: target,
                    connectTimeout: Self.connectTimeout,
                    security: security(address.host),
                    headers: headers
                )
                do {
                    let value = try await body(client)
                    if broker != preferred { state.withLock { $0.preferred[address.host] = broker } }
                    return value
                } catch let error as ClientError {
                    if case .refused = error { throw error }
                    guard error.isAboutAddress else { throw error.hostError(address.host, isSent: isSent) }
                    try Task.checkCancellation()
                    failure = error
                }
            }
        }
        throw failure.hostError(address.host, isSent: isSent)
    }
}

extension ResponseReader.End {
    /// True if the other broker cannot have executed the request.
    fileprivate var isUnprocessed: Bool {
        if case .idleClose = self { true } else { false }
    }
}

extension ClientError {
    /// The error of a request to the broker of another host. Every failed connection passes here.
    func hostError(_ host: HostName, isSent: Bool) -> HostError {
        switch self {
        case .connectionLost where isSent: .responseLost(host)
        case .connectionLost: .unreachable(host, reason: "it closed the connection")
        case .noListener(let address): .unreachable(host, reason: "nothing listens at \(address)")
        case .unreachable(let address, let reason): .unreachable(host, reason: "\(address): \(reason)")
        case .timedOut(_, let seconds) where isSent: .silent(host, seconds: Int(seconds.rounded(.up)))
        case .timedOut: .unreachable(host, reason: "it did not answer")
        case .notTrusted: .absent(host)
        case .keyRefused(let address): .unreachable(host, reason: "\(address) refused the certificate of this host")
        case .otherKey(let address):
            .unreachable(host, reason: "another host answers at \(address); nothing was sent to it")
        case .tlsFailed(let address, let reason): .unreachable(host, reason: "TLS with \(address) failed: \(reason)")
        default: .unreachable(host, reason: description)
        }
    }

    /// True if another address of the same host may work.
    fileprivate var isAboutAddress: Bool {
        switch self {
        case .otherKey, .keyRefused, .noListener, .unreachable, .tlsFailed, .timedOut: true
        default: false
        }
    }
}
