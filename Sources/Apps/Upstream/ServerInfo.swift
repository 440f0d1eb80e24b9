import Model

/// The identity, protocol version and transport of an app's server, from its `initialize` or `server/discover` result.
struct ServerInfo: Hashable, Sendable {
    /// The transport of the server.
    enum Transport: Hashable, Sendable {
        /// HTTP requests to a path.
        case http(path: String)
        /// One message per line on one stream, which is also the session (MCP 2026-07-28, transports, stdio; here over
        /// TCP).
        case lines
        /// The plain HTTP requests of a profile.
        case profile
    }

    let protocolVersion: ProtocolVersion
    /// The version as the server wrote it. It may be one that Patchbay does not know.
    let versionText: String
    let transport: Transport
    /// The session ID; nil in stateless mode or for a server without sessions.
    let sessionID: String?
    let info: JSONObject
    let capabilities: JSONObject
    let instructions: String?

    /// Reads the result of `initialize`.
    ///
    /// - Throws: `AppError.invalidResponse`.
    init(handshake result: JSON, at transport: Transport, sessionID: String?) throws(AppError) {
        let text = result["protocolVersion"]?.string ?? ""
        guard let version = ProtocolVersion.negotiated(text) else {
            let name = "the MCP version \(SanitizedText(text, limit: 40))"
            throw .invalidResponse("\(name); Patchbay supports \(ProtocolVersion.supported)")
        }
        (protocolVersion, versionText) = (version, ProtocolVersion.isDate(text) ? text : version.rawValue)
        self.transport = transport
        self.sessionID = sessionID
        info = result["serverInfo"]?.object ?? [:]
        capabilities = result["capabilities"]?.object ?? [:]
        instructions = result["instructions"]?.string
    }

    /// Reads the result of `server/discover`; nil if the server does not support the stateless version.
    init?(discovery result: JSON, at transport: Transport) {
        let versions = result["supportedVersions"]?.array?.compactMap(\.string) ?? []
        guard versions.contains(ProtocolVersion.v2026_07_28.rawValue) else { return nil }
        (protocolVersion, versionText) = (.v2026_07_28, ProtocolVersion.v2026_07_28.rawValue)
        self.transport = transport
        sessionID = nil
        info = result["_meta"]?["io.modelcontextprotocol/serverInfo"]?.object ?? [:]
        capabilities = result["capabilities"]?.object ?? [:]
        instructions = result["instructions"]?.string
    }

    /// The newest version with a handshake that the server may accept.
    var newestVersion: ProtocolVersion { min(protocolVersion, .latestWithHandshake) }

    /// The names of MCP's server capabilities that the server has. Names of its own are free text and left out.
    var capabilityNames: [String] {
        ["tools", "resources", "prompts", "completions", "logging"].filter { capabilities[$0] != nil }
    }

    /// Returns the headers of a later message to the server.
    func headers(for method: String, _ params: JSONObject) -> [(name: String, value: String)] {
        var headers = [(name: "MCP-Protocol-Version", value: versionText)]
        if let sessionID { headers.append((name: "Mcp-Session-Id", value: sessionID)) }
        guard protocolVersion.isStateless else { return headers }
        headers.append((name: "Mcp-Method", value: method))
        let name: String? =
            switch method {
            case "tools/call", "prompts/get": params["name"]?.string
            case "resources/read": params["uri"]?.string
            default: nil
            }
        if let name { headers.append((name: "Mcp-Name", value: HeaderEncoding.encode(name))) }
        return headers
    }

    /// Returns the `_meta` of a request to the server.
    func meta(_ given: JSON?, capabilities: JSONObject, logLevel: String? = nil) -> JSONObject? {
        var meta = given?.object ?? [:]
        if protocolVersion.isStateless {
            meta["io.modelcontextprotocol/protocolVersion"] = .string(protocolVersion.rawValue)
            meta["io.modelcontextprotocol/clientInfo"] = .object(Self.clientInfo)
            meta["io.modelcontextprotocol/clientCapabilities"] = .object(capabilities)
            if let logLevel { meta["io.modelcontextprotocol/logLevel"] = .string(logLevel) }
        }
        return meta.members.isEmpty ? nil : meta
    }
}

extension ServerInfo {
    /// Patchbay's identity in requests to apps. The identity of the client is not disclosed.
    static let clientInfo: JSONObject = ["name": "patchbay", "version": .string(Version.text)]

    /// The IDs of a session's requests are higher than those of its handshake, which may be answered late. All are whole
    /// numbers: some servers accept no text.
    static let lastHandshakeID = 10

    /// Distinguishes stateless servers from session-mode servers.
    static func discovery(of server: ServerInfo? = nil) -> UpstreamMessage {
        let meta: JSONObject = [
            "io.modelcontextprotocol/protocolVersion": .string(ProtocolVersion.v2026_07_28.rawValue),
            "io.modelcontextprotocol/clientInfo": .object(clientInfo),
            "io.modelcontextprotocol/clientCapabilities": [:],
        ]
        return UpstreamMessage("server/discover", ["_meta": .object(meta)], id: JSONNumber(1), to: server)
    }

    /// Builds the `initialize` request. A shared session declares no client capabilities; a client session declares
    /// those of its client.
    ///
    /// - Parameters:
    ///   - client: The client of a client session.
    ///   - version: The version to ask with.
    ///   - refusals: The number of versions that the server has refused.
    /// - Returns: The request. Its ID differs for each version.
    static func handshake(
        for client: ClientSessionParameters? = nil,
        version: ProtocolVersion = .latestWithHandshake,
        refusals: Int = 0
    ) -> UpstreamMessage {
        let params: JSONObject = [
            "protocolVersion": .string(version.rawValue),
            "capabilities": .object(client?.capabilities.json ?? [:]), "clientInfo": .object(clientInfo),
        ]
        return UpstreamMessage("initialize", params, id: JSONNumber(2 + refusals))
    }
}
