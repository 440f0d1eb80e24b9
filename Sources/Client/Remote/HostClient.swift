package import Model
import NIOCore
import NIOHTTP1
import Synchronization
import SystemIO

/// Sends requests to the brokers of other hosts of the team, over connections that stay open for the next request.
///
/// A TLS handshake takes longer than a whole request, so a connection serves many requests.
package final class HostClient: Sendable {
    /// The time without a request after which a connection is not used again. The other broker closes it after 60 s.
    private static let lifetime = Duration.seconds(45)
    /// The maximum number of idle connections per host.
    private static let maxIdle = 8
    /// The time for a connection to one address, with its handshake.
    static let connectTimeout = Duration.seconds(5)

    private struct State {
        var idle: [HostName: [HostConnection]] = [:]
        /// The address that worked last.
        var preferred: [HostName: BrokerAddress] = [:]
    }

    private let state = Mutex(State())
    let security: any MemberClientSecurity

    private let addresses: MemberAddressCheck

    /// - Parameters:
    ///   - security: TLS to the brokers of other hosts.
    ///   - addressRefusal: Returns the reason why a numeric address cannot be that of another host; nil if it can be.
    package init(
        security: any MemberClientSecurity,
        addressRefusal: @escaping @Sendable (_ address: String) -> String?
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
    /// - Returns: The response, which the caller must close.
    /// - Throws: `ClientError`, `CancellationError`.
    package func send(_ request: HostHTTPRequest, to address: MemberAddress) async throws -> HostHTTPResponse {
        let head = request.head(to: address.host)
        while let connection = takeIdle(to: address) {
            do {
                return try response(
                    to: request,
                    over: connection,
                    try await connection.exchange(head, body: request.body, within: request.timeout)
                )
            } catch let end as ResponseReader.End {
                connection.close()
                // The other idle connections take the same time to fail.
                if !end.isUnprocessed { closeIdle(to: address.host) }
                try Task.checkCancellation()
                if case .timedOut = end { throw request.timeoutError }
                guard request.isIdempotent || end.isUnprocessed else {
                    throw ClientError.connectionLost(what: request.name)
                }
            }
        }
        do {
            return try await first(of: address) { http in
                let connection = try await connect(to: address, over: http)
                do {
                    try await send(head, body: request.body, over: connection, at: http.address)
                    return try response(
                        to: request,
                        over: connection,
                        try await connection.next(within: request.timeout)
                    )
                } catch let end as ResponseReader.End {
                    connection.close()
                    try Task.checkCancellation()
                    // The other addresses lead to the same broker.
                    if case .timedOut = end { throw end }
                    throw end.error(of: request, over: http)
                }
            }
        } catch is ResponseReader.End {
            throw request.timeoutError
        }
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
        to request: HostHTTPRequest,
        over connection: HostConnection,
        _ parts: [HTTPClientResponsePart]
    ) throws(ResponseReader.End) -> HostHTTPResponse {
        try HostHTTPResponse(to: request, over: connection, parts) { [weak self] in self?.add($0) }
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
    package func closeIdle(to host: HostName) {
        let closed = state.withLock { state in
            state.preferred[host] = nil
            return state.idle.removeValue(forKey: host) ?? []
        }
        for connection in closed { connection.close() }
    }

    /// Closes all idle connections.
    package func closeAll() { for host in state.withLock({ Array($0.idle.keys) }) { closeIdle(to: host) } }

    private func connect(to address: MemberAddress, over http: HTTPConnection) async throws -> HostConnection {
        let (channel, reader) = try await http.connect(for: ResponseReader.End.request) { channel in
            (channel, try HostConnection.addHandlers(to: channel))
        }
        return HostConnection(to: address, over: channel, reader)
    }

    /// Tries the addresses of a host in order, beginning with the one that worked last.
    ///
    /// - Throws: The error of the last address.
    func first<Value: ~Copyable & Sendable>(
        of address: MemberAddress,
        _ body: (HTTPConnection) async throws -> Value
    ) async throws -> Value {
        let preferred = state.withLock { $0.preferred[address.host] }
        let brokers = address.brokers.filter { $0 == preferred } + address.brokers.filter { $0 != preferred }
        var failure: any Error = ClientError.unreachable(address: "\(address.host)", reason: "it publishes no address")
        for broker in brokers {
            do {
                let value = try await first(of: try await addresses.targets(of: broker), on: address.host, body)
                if broker != preferred { state.withLock { $0.preferred[address.host] = broker } }
                return value
            } catch let error as ClientError where error.isAboutAddress {
                try Task.checkCancellation()
                failure = error
            }
        }
        throw failure
    }

    /// Tries the numeric addresses of one name in order.
    private func first<Value: ~Copyable & Sendable>(
        of targets: [BrokerAddress],
        on host: HostName,
        _ body: (HTTPConnection) async throws -> Value
    ) async throws -> Value {
        var failure: any Error = ClientError.unreachable(address: "\(host)", reason: "it publishes no address")
        for target in targets {
            let connection = HTTPConnection(
                address: target,
                idleTimeout: Self.connectTimeout,
                security: security.security(to: host)
            )
            do { return try await body(connection) } catch let error as ClientError where error.isAboutAddress {
                try Task.checkCancellation()
                failure = error
            }
        }
        throw failure
    }
}

extension ResponseReader.End {
    /// True if the other broker cannot have executed the request.
    fileprivate var isUnprocessed: Bool {
        if case .idleClose = self { true } else { false }
    }

    /// A request for the messages of errors before any request was sent.
    static let request = OutgoingRequest(method: .GET, path: [])

    /// Returns the meaning of the end of a new connection.
    fileprivate func error(of request: HostHTTPRequest, over http: HTTPConnection) -> ClientError {
        guard case .broken(let error?) = self, let failure = http.failure(ofRemote: error, Self.request) else {
            return .connectionLost(what: request.name)
        }
        if case .connectionLost = failure { return .connectionLost(what: request.name) }
        return failure
    }
}

extension ClientError {
    /// True if another address of the same host may work.
    fileprivate var isAboutAddress: Bool {
        switch self {
        case .otherKey, .keyRefused, .noListener, .unreachable, .tlsFailed, .timedOut: true
        default: false
        }
    }
}
