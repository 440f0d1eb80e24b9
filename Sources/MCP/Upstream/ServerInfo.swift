import JSON
import Model

/// What an app's server said when it was met: in which words to speak to it, and what it is.
struct ServerInfo: Hashable, Sendable {
    let revision: ProtocolVersion
    let place: UpstreamTransport
    /// Of a server with sessions, in the eras that have them.
    let sessionID: String?
    let info: JSONObject
    let capabilities: JSONObject
    let instructions: String?

    /// Reads the result of `initialize`.
    ///
    /// - Throws: `Trouble.unclear`.
    init(handshake result: JSON, at place: UpstreamTransport, sessionID: String?) throws(Trouble) {
        guard let revision = result["protocolVersion"]?.string.flatMap(ProtocolVersion.init), !revision.isStateless
        else {
            throw .unclear("a revision of MCP that is not spoken here")
        }
        self.revision = revision
        self.place = place
        self.sessionID = sessionID
        info = result["serverInfo"]?.object ?? [:]
        capabilities = result["capabilities"]?.object ?? [:]
        instructions = result["instructions"]?.string
    }

    /// Reads the result of `server/discover`; nil when it does not speak the stateless revision that is spoken here.
    init?(discovery result: JSON, at place: UpstreamTransport) {
        let revisions = result["supportedVersions"]?.array?.compactMap(\.string) ?? []
        guard revisions.contains(ProtocolVersion.july2026.rawValue) else { return nil }
        revision = .july2026
        self.place = place
        sessionID = nil
        info = result["_meta"]?["io.modelcontextprotocol/serverInfo"]?.object ?? [:]
        capabilities = result["capabilities"]?.object ?? [:]
        instructions = result["instructions"]?.string
    }

    /// Headers that every later message to it has.
    func headers(for method: String, _ params: JSONObject) -> [(name: String, value: String)] {
        var headers = [(name: "MCP-Protocol-Version", value: revision.rawValue)]
        if let sessionID { headers.append((name: "Mcp-Session-Id", value: sessionID)) }
        guard revision.isStateless else { return headers }
        headers.append((name: "Mcp-Method", value: method))
        let name: String? =
            switch method {
            case "tools/call", "prompts/get": params["name"]?.string
            case "resources/read": params["uri"]?.string
            default: nil
            }
        if let name { headers.append((name: "Mcp-Name", value: HeaderValue.encode(name))) }
        return headers
    }

    /// The `_meta` that a request to it has.
    func meta(_ given: JSON?, capabilities: JSONObject, logLevel: String? = nil) -> JSONObject? {
        var meta = given?.object ?? [:]
        if revision.isStateless {
            meta["io.modelcontextprotocol/protocolVersion"] = .string(revision.rawValue)
            meta["io.modelcontextprotocol/clientInfo"] = .object(Self.us)
            meta["io.modelcontextprotocol/clientCapabilities"] = .object(capabilities)
            if let logLevel { meta["io.modelcontextprotocol/logLevel"] = .string(logLevel) }
        }
        return meta.members.isEmpty ? nil : meta
    }
}

extension ServerInfo {
    /// What Patchbay calls itself towards an app; who calls through it is nobody's business there.
    static let us: JSONObject = ["name": "patchbay", "version": .string(Version.text)]

    /// With which a server of the stateless era is told from the others.
    static let discoveryRequest = RPCRequest(id: .text("discover"), method: "server/discover", params: discovery)

    private static let discovery: JSONObject = [
        "_meta": [
            "io.modelcontextprotocol/protocolVersion": .string(ProtocolVersion.july2026.rawValue),
            "io.modelcontextprotocol/clientInfo": .object(us),
            "io.modelcontextprotocol/clientCapabilities": [:],
        ]
    ]

    /// `initialize`: for everybody we can do nothing for an app, for one caller what that one can.
    static func handshake(for own: ClientSessionParameters? = nil) -> RPCRequest {
        let params: JSONObject = [
            "protocolVersion": .string((own?.revision ?? .latestWithHandshake).rawValue),
            "capabilities": .object(own?.faculties.capabilities ?? [:]), "clientInfo": .object(us),
        ]
        return RPCRequest(id: .text("initialize"), method: "initialize", params: params)
    }
}

/// Where an app's server takes messages.
enum UpstreamTransport: Hashable, Sendable {
    /// As requests of HTTP, at that path.
    case http(path: String)
    /// A message a line on one stream, which is the session (MCP 2026-07-28, transports, stdio: over TCP, too).
    case lines
}
