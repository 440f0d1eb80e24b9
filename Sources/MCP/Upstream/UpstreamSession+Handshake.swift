import AccessControl
import JSON
import Model

/// Finding out what an app's server speaks.
extension UpstreamSession {
    /// Asks for the stateless era first, as a server of both has no sessions in it, then for the handshake; over HTTP, or in
    /// lines where that is not what its server speaks.
    ///
    /// - Throws: `Trouble`; nothing of what is asked here changes anything in the app.
    func introduce(_ endpoint: Endpoint, by passages: [AuthorizedRoute]) async throws -> ServerInfo {
        let paths = Self.paths(of: endpoint.kind, endpoint.txt)
        var first: Trouble?
        for isInLines in own == nil ? Self.wires(of: endpoint) : [false] {
            do {
                if let own { return try await introduce(own, passages) }
                if !isInLines { return try await meetOverHTTP(paths, passages) }
                if let met = try await meetOverLines(passages) { return met }
            } catch let trouble as Trouble {
                // What answers nothing may be waiting for the end of a line, or for the rest of a request's head.
                guard trouble == .lost || trouble == Self.noHTTP || trouble.isSilence else { throw trouble }
                first = first ?? trouble
            }
        }
        switch first {
        case .lost:
            throw Trouble.unreachable(DialError(.cut, "the connection ended before \(id) had said what it is"))
        case let silence? where silence.isSilence: throw silence
        default: throw Trouble.noMCP
        }
    }

    private static let noHTTP = Trouble.unclear("\(HTTPParseError.notHTTP)")

    /// In which order it is found out whether a server takes lines. `_mcp._tcp` says so where nothing beside it speaks of HTTP
    /// (SwiftMCP's `http` is another port, to which nobody said yes).
    static func wires(of endpoint: Endpoint) -> [Bool] {
        guard endpoint.kind == .mcp else { return [false] }
        let speaksOfHTTP = ["path", "mcp_path", "transport"].contains { endpoint.txt.contains($0) }
        return endpoint.sources.contains(.bonjour) && !speaksOfHTTP ? [true, false] : [false, true]
    }

    /// - Throws: `Trouble`; `noHTTP` where that is what answers.
    private func meetOverHTTP(_ paths: [String], _ passages: [AuthorizedRoute]) async throws -> ServerInfo {
        for path in paths {
            if let met = try await discover(path, passages) { return met }
            if let met = try await shakeHands(path, passages) { return met }
        }
        throw Trouble.noMCP
    }

    /// A session for one caller alone, at a server that was met before.
    private func introduce(_ own: ClientSessionParameters, _ passages: [AuthorizedRoute]) async throws -> ServerInfo {
        guard let met = try await shakeHands(own.path, passages) else { throw Trouble.noMCP }
        if let logLevel {
            let request = RPCRequest(id: .text("level"), method: "logging/setLevel", params: ["level": logLevel])
            let headers = met.headers(for: request.method, [:])
            _ = try await introduce(request, at: own.path, headers, passages)
        }
        return met
    }

    /// Where a server may be: AppReveal answers at any path, others at the one that their advert tells, or at the usual one.
    static func paths(of kind: EndpointKind, _ txt: TXTRecord) -> [String] {
        if kind == .appreveal { return ["/"] }
        let told = (txt["path"] ?? txt["mcp_path"]).map { $0.hasPrefix("/") ? $0 : "/\($0)" }
        let allowed = told.flatMap { path in
            path.utf8.count <= 128 && path.utf8.allSatisfy { (0x21...0x7E).contains($0) } ? path : nil
        }
        return (allowed.map { [$0] } ?? []) + ["/mcp", "/"].filter { $0 != allowed }
    }

    /// - Returns: Nil when the server is of an earlier era, or not there.
    private func discover(_ path: String, _ passages: [AuthorizedRoute]) async throws -> ServerInfo? {
        let answer = try await introduce(
            ServerInfo.discoveryRequest,
            at: path,
            [
                ("MCP-Protocol-Version", ProtocolVersion.july2026.rawValue), ("Mcp-Method", "server/discover"),
            ],
            passages
        )
        guard let answer, case .success(let result)? = answer.outcome else { return nil }
        return ServerInfo(discovery: result, at: .http(path: path))
    }

    private func shakeHands(_ path: String, _ passages: [AuthorizedRoute]) async throws -> ServerInfo? {
        let answer = try await introduce(ServerInfo.handshake(for: own), at: path, [], passages)
        guard let answer, case .success(let result)? = answer.outcome else { return nil }
        let place = UpstreamTransport.http(path: path)
        let met = try ServerInfo(handshake: result, at: place, sessionID: answer.sessionID)
        let done = RPCNotification(method: "notifications/initialized")
        _ = try await exchange(
            RPCMessage.notification(done).json,
            at: place,
            met.headers(for: done.method, [:]),
            passages,
            awaiting: nil,
            limits: .introduction
        )
        return met
    }

    /// - Returns: Nil when what answers there is no MCP.
    private func introduce(
        _ request: RPCRequest,
        at path: String,
        _ headers: [(name: String, value: String)],
        _ passages: [AuthorizedRoute]
    ) async throws -> UpstreamResponse? {
        do {
            let answer = try await exchange(
                RPCMessage.request(request).json,
                at: .http(path: path),
                headers,
                passages,
                awaiting: request.id,
                limits: .introduction
            )
            if case .wantsSecret(let what)? = Self.refusal(answer, passages) { throw Trouble.wantsSecret(what) }
            return answer
        } catch let trouble as Trouble {
            guard case .unclear = trouble, trouble != Self.noHTTP else { throw trouble }
            return nil
        }
    }
}
