import AccessControl
import JSON
import Model

/// Detects the protocol version and the transport of an app's server.
extension UpstreamSession {
    /// Tries stateless mode first, because a server that supports both modes has no sessions in it. Then tries
    /// `initialize`. Uses HTTP, or lines if the server does not speak HTTP.
    ///
    /// - Throws: `UpstreamError`. The requests sent here have no side effects in the app.
    func handshake(with endpoint: Endpoint, by routes: [AuthorizedRoute]) async throws -> ServerInfo {
        let paths = Self.paths(of: endpoint.kind, endpoint.txt)
        var first: UpstreamError?
        for isInLines in clientParameters == nil ? Self.transports(of: endpoint) : [false] {
            do {
                if let clientParameters { return try await openClientSession(clientParameters, by: routes) }
                if !isInLines { return try await connectOverHTTP(paths, by: routes) }
                if let server = try await connectOverLines(routes) { return server }
            } catch let failure as UpstreamError {
                // A silent server may be waiting for the end of a line, or for the rest of a request head.
                guard failure == .responseLost || failure == Self.noHTTP || failure.isTimeout else { throw failure }
                first = first ?? failure
            }
        }
        switch first {
        case .responseLost:
            throw UpstreamError.unreachable(DialError(.linkLost, "\(id) closed the connection before the handshake"))
        case let timeout? where timeout.isTimeout: throw timeout
        default: throw UpstreamError.notMCP
        }
    }

    private static let noHTTP = UpstreamError.invalidResponse("\(HTTPParseError.notHTTP)")

    /// Returns the order in which transports are tried; true stands for lines. A Bonjour `_mcp._tcp` service is tried
    /// with lines first, unless its TXT record mentions HTTP. SwiftMCP's `http` entry is another port, which is not
    /// approved.
    static func transports(of endpoint: Endpoint) -> [Bool] {
        guard endpoint.kind == .mcp else { return [false] }
        let mentionsHTTP = ["path", "mcp_path", "transport"].contains { endpoint.txt.contains($0) }
        return endpoint.sources.contains(.bonjour) && !mentionsHTTP ? [true, false] : [false, true]
    }

    /// Connects over HTTP.
    ///
    /// - Throws: `UpstreamError`; `noHTTP` if the server does not speak HTTP.
    private func connectOverHTTP(_ paths: [String], by routes: [AuthorizedRoute]) async throws -> ServerInfo {
        for path in paths {
            if let server = try await discover(at: path, by: routes) { return server }
            if let server = try await initialize(at: path, by: routes) { return server }
        }
        throw UpstreamError.notMCP
    }

    /// Opens a session for one client at a known server.
    private func openClientSession(_ parameters: ClientSessionParameters, by routes: [AuthorizedRoute]) async throws
        -> ServerInfo
    {
        guard let server = try await initialize(at: parameters.path, by: routes) else { throw UpstreamError.notMCP }
        if let logLevel {
            let request = RPCRequest(id: .text("level"), method: "logging/setLevel", params: ["level": logLevel])
            let headers = server.headers(for: request.method, [:])
            _ = try await sendHandshakeRequest(request, at: parameters.path, headers: headers, by: routes)
        }
        return server
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

    /// Sends `server/discover`.
    ///
    /// - Returns: Nil if the server does not support stateless mode, or is not at this path.
    private func discover(at path: String, by routes: [AuthorizedRoute]) async throws -> ServerInfo? {
        let response = try await sendHandshakeRequest(
            ServerInfo.discoveryRequest,
            at: path,
            headers: [
                ("MCP-Protocol-Version", ProtocolVersion.v2026_07_28.rawValue), ("Mcp-Method", "server/discover"),
            ],
            by: routes
        )
        guard let response, case .success(let result)? = response.outcome else { return nil }
        return ServerInfo(discovery: result, at: .http(path: path))
    }

    private func initialize(at path: String, by routes: [AuthorizedRoute]) async throws -> ServerInfo? {
        let response = try await sendHandshakeRequest(
            ServerInfo.handshake(for: clientParameters),
            at: path,
            headers: [],
            by: routes
        )
        guard let response, case .success(let result)? = response.outcome else { return nil }
        let transport = UpstreamTransport.http(path: path)
        let server = try ServerInfo(handshake: result, at: transport, sessionID: response.sessionID)
        let done = RPCNotification(method: "notifications/initialized")
        _ = try await exchange(
            RPCMessage.notification(done).json,
            at: transport,
            headers: server.headers(for: done.method, [:]),
            by: routes,
            awaiting: nil,
            limits: .handshake
        )
        return server
    }

    /// Sends one request of the handshake.
    ///
    /// - Returns: Nil if the response is not MCP.
    private func sendHandshakeRequest(
        _ request: RPCRequest,
        at path: String,
        headers: [(name: String, value: String)],
        by routes: [AuthorizedRoute]
    ) async throws -> UpstreamResponse? {
        do {
            let response = try await exchange(
                RPCMessage.request(request).json,
                at: .http(path: path),
                headers: headers,
                by: routes,
                awaiting: request.id,
                limits: .handshake
            )
            if case .tokenRequired(let what)? = Self.rejection(of: response, by: routes) {
                throw UpstreamError.tokenRequired(what)
            }
            return response
        } catch let failure as UpstreamError {
            guard case .invalidResponse = failure, failure != Self.noHTTP else { throw failure }
            return nil
        }
    }
}
