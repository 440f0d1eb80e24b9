import AccessControl
import Model
import SystemIO

/// Detects the protocol version and the transport of an app's server.
///
/// The requests sent here have no side effects in the app.
struct UpstreamHandshake: Sendable {
    /// The maximum number of redirects of one request.
    private static let redirectLimit = 3
    /// A server that closes the stream within this time has refused the first method. A person who refuses is slower.
    private static let refusalLimit = Duration.seconds(1)
    private static let noHTTP = AppError.invalidResponse("\(ExchangeError.notHTTP)")

    let pool: ConnectionPool
    let routes: [AuthorizedRoute]
    /// The server of an earlier handshake with the same launch: its path and version are tried first.
    var known: ServerInfo?
    /// The parameters of a client session at a known server; nil for the shared session.
    var clientParameters: ClientSessionParameters?
    /// The client's minimum log level, if set.
    var logLevel: JSON?
    /// The limits of a later request.
    let limits: ResponseLimits
    /// Handles the server's own messages.
    let handler: UpstreamMessageHandler

    /// Tries stateless mode first, because a server that supports both modes has no sessions in it. Then tries
    /// `initialize`. Uses HTTP, or lines if the server does not speak HTTP.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func run(with endpoint: Endpoint) async throws -> (ServerInfo, any UpstreamTransport) {
        if let clientParameters { return try await openClientSession(clientParameters, of: endpoint.id) }
        var first: AppError?
        for isInLines in Self.transports(of: endpoint) {
            do {
                if !isInLines { return try await connectOverHTTP(Self.paths(of: endpoint.kind, endpoint.txt)) }
                if let connected = try await connectOverLines() { return connected }
            } catch let failure as AppError {
                guard Self.allowsOtherTransport(failure) else { throw failure }
                first = first ?? failure
            }
        }
        throw Self.failure(after: first, of: endpoint.id)
    }

    /// Returns whether the server may speak another protocol. A silent server may be waiting for the end of a line, or
    /// for the rest of a request head.
    private static func allowsOtherTransport(_ failure: AppError) -> Bool {
        failure == .responseLost || failure == noHTTP || failure.isTimeout
    }

    private static func failure(after first: AppError?, of id: EndpointID) -> AppError {
        switch first {
        case .responseLost: .unreachable(DialError(.linkLost, "\(id) closed the connection before the handshake"))
        case let timeout? where timeout.isTimeout: timeout
        default: .notMCP
        }
    }

    /// Returns the order in which transports are tried; true stands for lines. A Bonjour `_mcp._tcp` service is tried
    /// with lines first, unless its TXT record mentions HTTP. SwiftMCP's `http` entry is another port, which is not
    /// approved.
    /// Patchbay's own server answers for an app that connected, in lines.
    static func transports(of endpoint: Endpoint) -> [Bool] {
        if endpoint.routes.contains(where: \.route.isInbound) { return [true] }
        guard endpoint.kind == .mcp else { return [false] }
        let mentionsHTTP = ["path", "mcp_path", "transport"].contains { endpoint.txt.contains($0) }
        return endpoint.sources.contains(.bonjour) && !mentionsHTTP ? [true, false] : [false, true]
    }

    /// Returns the candidate paths of a server. AppReveal answers at any path. Others use the advertised path, `/mcp`
    /// or `/`.
    static func paths(of kind: EndpointKind, _ txt: TXTRecord) -> [String] {
        if kind == .appreveal { return ["/"] }
        let advertised = (txt["path"] ?? txt["mcp_path"]).map { $0.hasPrefix("/") ? $0 : "/\($0)" }
        let allowed = advertised.flatMap { path in
            path.utf8.count <= 128 && path.utf8.allSatisfy { (0x21...0x7E).contains($0) } ? path : nil
        }
        return (allowed.map { [$0] } ?? []) + ["/mcp", "/"].filter { $0 != allowed }
    }
}

/// Plain HTTP, as a profile describes it.
extension UpstreamHandshake {
    /// Recognises the server on the first route that can be dialled.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func run(
        with endpoint: Endpoint,
        transport: (Route) -> ProfileTransport
    ) async throws -> (ServerInfo, any UpstreamTransport) {
        var first: DialError?
        for route in routes {
            do {
                let transport = transport(route.route)
                let result = try await transport.exchange(ServerInfo.handshake(), by: [route], handler: handler)
                    .result()
                return (try ServerInfo(handshake: .object(result), at: .profile, sessionID: nil), transport)
            } catch AppError.unreachable(let failure) {
                first = first ?? failure
            } catch AppError.responseLost {
                throw Self.failure(after: .responseLost, of: endpoint.id)
            }
        }
        throw AppError.unreachable(first ?? UpstreamConnector.noRoute(to: endpoint))
    }
}

/// HTTP.
extension UpstreamHandshake {
    /// Connects over HTTP.
    ///
    /// - Throws: `AppError`; `noHTTP` if the server does not speak HTTP.
    private func connectOverHTTP(_ paths: [String]) async throws -> (ServerInfo, any UpstreamTransport) {
        var failure = AppError.notMCP
        if let known, !known.protocolVersion.isStateless, case .http(let path) = known.transport {
            var transport = HTTPTransport(path: path, pool: pool)
            if let server = try? await initialize(over: &transport) { return (server, transport) }
        }
        for path in paths {
            var transport = HTTPTransport(path: path, pool: pool)
            do {
                if let server = try await connect(over: &transport) { return (server, transport) }
            } catch let redirect as UnfollowedRedirect { failure = redirect.failure }
        }
        throw failure
    }

    private func connect(over transport: inout HTTPTransport) async throws -> ServerInfo? {
        var isDiscoveryLost = false
        do { if let server = try await discover(over: &transport) { return server } } catch AppError.responseLost {
            isDiscoveryLost = true
        }
        let server = try await initialize(over: &transport)
        if isDiscoveryLost, server != nil { pool.record(.refusedDiscovery) }
        return server
    }

    /// Opens a session for one client at a known server.
    private func openClientSession(
        _ parameters: ClientSessionParameters,
        of id: EndpointID
    ) async throws -> (ServerInfo, any UpstreamTransport) {
        var transport = HTTPTransport(path: parameters.path, pool: pool)
        do {
            guard let server = try await initialize(over: &transport) else { throw AppError.notMCP }
            if let logLevel {
                let number = JSONNumber(ServerInfo.lastHandshakeID)
                let message = UpstreamMessage("logging/setLevel", ["level": logLevel], id: number, to: server)
                _ = try await send(message, over: &transport)
            }
            return (server, transport)
        } catch let redirect as UnfollowedRedirect {
            throw redirect.failure
        } catch let failure as AppError where Self.allowsOtherTransport(failure) {
            throw Self.failure(after: failure, of: id)
        }
    }

    /// Sends `server/discover`.
    ///
    /// - Returns: Nil if the server does not support stateless mode, or is not at this path.
    private func discover(over transport: inout HTTPTransport) async throws -> ServerInfo? {
        var message = ServerInfo.discovery()
        message.headers = [
            ("MCP-Protocol-Version", ProtocolVersion.v2026_07_28.rawValue), ("Mcp-Method", "server/discover"),
        ]
        let response = try await send(message, over: &transport)
        guard case .success(let result)? = response?.outcome else { return nil }
        return ServerInfo(discovery: result, at: .http(path: transport.path))
    }

    private func initialize(over transport: inout HTTPTransport) async throws -> ServerInfo? {
        let response = try await negotiate { try await send($0, over: &transport) }
        guard let response, case .success(let result)? = response.outcome else { return nil }
        let server = try ServerInfo(
            handshake: result,
            at: .http(path: transport.path),
            sessionID: response.sessionID
        )
        let done = UpstreamMessage("notifications/initialized", to: server)
        _ = try await transport.exchange(done, by: routes, handler: handler)
        return server
    }

    /// Sends `initialize`, with older versions after a server has refused one.
    ///
    /// - Returns: The last response; nil if it is not MCP.
    private func negotiate(
        _ send: (UpstreamMessage) async throws -> UpstreamResponse?
    ) async throws -> UpstreamResponse? {
        var negotiation = VersionNegotiation(
            from: clientParameters?.protocolVersion ?? known?.newestVersion ?? .latestWithHandshake
        )
        while true {
            var request = ServerInfo.handshake(
                for: clientParameters,
                version: negotiation.version,
                refusals: negotiation.refusals
            )
            request.headers = negotiation.headers
            guard let response = try await send(request) else { return nil }
            if negotiation.shouldAskAgain(after: response) { continue }
            guard case .success(let result)? = response.outcome else { return response }
            if negotiation.refusals > 0 { pool.record(.refusedVersion) }
            if ProtocolVersion(rawValue: result["protocolVersion"]?.string ?? "") == nil {
                pool.record(.unknownVersion)
            }
            return response
        }
    }

    /// Sends one request of the handshake. A redirect to another path of the same origin changes the path of the
    /// transport.
    ///
    /// - Returns: Nil if the response is not MCP.
    /// - Throws: `AppError`, `UnfollowedRedirect`, `CancellationError`.
    private func send(
        _ message: UpstreamMessage,
        over transport: inout HTTPTransport
    ) async throws -> UpstreamResponse? {
        do {
            var redirects = 0
            while true {
                let response = try await transport.exchange(message, by: routes, handler: handler)
                if case .path(let path)? = response.redirect, path != transport.path, redirects < Self.redirectLimit {
                    redirects += 1
                    transport = HTTPTransport(path: path, pool: pool)
                    pool.record(.redirect)
                    continue
                }
                if let failure = response.rejection(by: routes) {
                    guard response.redirect != nil else { throw failure }
                    throw UnfollowedRedirect(failure: failure)
                }
                return response
            }
        } catch let failure as AppError {
            guard case .invalidResponse = failure, failure != Self.noHTTP else { throw failure }
            return nil
        }
    }
}

/// A redirect to another origin, or too many redirects. The server may speak MCP at another path.
private struct UnfollowedRedirect: Error {
    let failure: AppError
}

/// Lines.
extension UpstreamHandshake {
    /// Performs the handshake on a new stream.
    ///
    /// - Returns: Nil if the server does not answer with messages in lines.
    /// - Throws: `AppError`; `responseLost` and `timedOut` if no response shows which protocol the server speaks.
    private func connectOverLines() async throws -> (ServerInfo, any UpstreamTransport)? {
        let start = pool.watch.elapsed
        let isKnown = known?.transport == .lines && known?.protocolVersion.isStateless == false
        do { return try await connectOverLines(discovers: !isKnown) } catch AppError.responseLost
            where !isKnown && pool.watch.elapsed - start < Self.refusalLimit
        {
            let connected = try await connectOverLines(discovers: false)
            if connected != nil { pool.record(.refusedDiscovery) }
            return connected
        }
    }

    private func connectOverLines(discovers: Bool) async throws -> (ServerInfo, any UpstreamTransport)? {
        let (connection, _, _) = try await pool.open(routes, mayReuse: false)
        let transport = LineTransport(connection, of: pool, handler: handler)
        return try await initialize(over: transport, discovers: discovers).map { ($0, transport) }
    }

    /// MCP 2026-07-28, stdio, backward compatibility: any error or silence indicates an earlier version.
    private func initialize(over transport: LineTransport, discovers: Bool) async throws -> ServerInfo? {
        var hasResponded = false
        let response: UpstreamResponse?
        do {
            if discovers {
                do {
                    let discovered = try await send(ServerInfo.discovery(), over: transport, limits: .discovery)
                    hasResponded = true
                    if case .success(let result)? = discovered.outcome,
                        let server = ServerInfo(discovery: result, at: .lines)
                    {
                        return server
                    }
                } catch AppError.timedOut {}
            }
            // An MCP server may first ask a person to confirm the connection.
            let limits = hasResponded ? limits : .handshake
            response = try await negotiate { try await send($0, over: transport, limits: limits) }
        } catch AppError.invalidResponse where !hasResponded {
            return nil
        } catch AppError.responseLost where hasResponded {
            // Not retried at the poll interval, because that would ask the person each time.
            throw AppError.invalidResponse("the end of the connection during the handshake")
        }
        guard case .success(let result)? = response?.outcome else { return nil }
        let server = try ServerInfo(handshake: result, at: .lines, sessionID: nil)
        let done = UpstreamMessage("notifications/initialized")
        _ = try await transport.exchange(done, by: routes, handler: handler)
        return server
    }

    private func send(_ request: UpstreamMessage, over transport: LineTransport, limits: ResponseLimits) async throws
        -> UpstreamResponse
    {
        var message = request
        message.limits = limits
        return try await transport.exchange(message, by: routes, handler: handler)
    }
}
