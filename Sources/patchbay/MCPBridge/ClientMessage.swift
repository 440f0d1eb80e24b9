import Client
import FoundationEssentials
import Model

/// A JSON-RPC message of the MCP client, with the fields that the bridge needs.
struct ClientMessage: Sendable {
    private static let revisionKey = "io.modelcontextprotocol/protocolVersion"
    private static let capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"

    let bytes: [UInt8]
    /// The request ID; nil for other messages.
    let id: JSON?
    /// The method; nil for a response and for a batch (2025-03-26).
    let method: String?
    /// The reason why this is not a valid JSON-RPC 2.0 message for MCP; nil for a valid message.
    let fault: String?
    /// True for a request or a batch; false for a notification or a response.
    let expectsResponse: Bool
    let params: JSON?
    /// The whole message.
    let json: JSON
    /// The ID of a response; nil for other messages.
    let responseID: JSON?

    /// Parses one line.
    ///
    /// - Throws: `JSONError` for invalid JSON.
    init(_ line: [UInt8]) throws(JSONError) { self.init(try JSON(parsing: line), bytes: line) }

    /// Creates a message of the bridge itself.
    init(_ json: JSON) { self.init(json, bytes: json.bytes) }

    private init(_ json: JSON, bytes: [UInt8]) {
        self.json = json
        self.bytes = bytes
        method = json["method"]?.string
        params = json["params"]
        let rawID = json["id"]
        id = method == nil ? nil : rawID.flatMap { $0.string == nil && $0.number == nil ? nil : $0 }
        let isResponse = json["result"] != nil || json["error"] != nil
        responseID = method == nil && isResponse ? rawID : nil
        expectsResponse = method == nil ? !isResponse : rawID != nil
        fault =
            if method != nil, let rawID, id == nil {
                "the id of a request must be a text or a number, not \(rawID.typeDescription)"
            } else if json.object == nil, json.array == nil {
                "a message must be an object, not \(json.typeDescription)"
            } else {
                nil
            }
    }

    /// The protocol version in the request's metadata (since 2026-07-28); nil in a session with a negotiated version.
    var revision: String? { params?["_meta"]?[Self.revisionKey]?.string }

    /// The ID in a cancel notification; nil for other messages.
    var cancelled: JSON? { method == "notifications/cancelled" ? params?["requestId"] : nil }

    var isInitialize: Bool { method == "initialize" }
    /// The name of the tool of a tool call; nil for other messages.
    var tool: String? { method == "tools/call" ? params?["name"]?.string : nil }
    /// True if the request acts on one phone. Other requests, such as lists, are the same for every phone.
    var needsChoice: Bool { ["tools/call", "prompts/get", "resources/read", "resources/subscribe"].contains(method) }
    /// The answer to a question of the bridge, in a repeated request of MCP 2026-07-28. Nil for other messages.
    var answer: JSON? {
        guard params?["requestState"] == .string(EndpointQuestion.requestState) else { return nil }
        return params?["inputResponses"]?[EndpointQuestion.name]
    }
    /// The capabilities in the request's metadata (since 2026-07-28) or in `initialize`.
    var capabilities: JSON? { params?["_meta"]?[Self.capabilitiesKey] ?? params?["capabilities"] }

    /// Returns the request without the answer to a question of the bridge.
    var withoutAnswer: ClientMessage {
        guard answer != nil, var request = json.object, var params = params?.object else { return self }
        (params["requestState"], params["inputResponses"]) = (nil, nil)
        request["params"] = .object(params)
        return ClientMessage(.object(request))
    }

    /// Returns a request of the bridge with the metadata of this message.
    func request(_ method: String, id: JSON) -> ClientMessage {
        var params: JSONObject = [:]
        params["_meta"] = revision == nil ? nil : self.params?["_meta"]
        return ClientMessage(["jsonrpc": "2.0", "id": id, "method": .string(method), "params": .object(params)])
    }

    /// True for a request that stays open until the client ends it.
    var isSubscription: Bool { method == "subscriptions/listen" }

    /// Returns true for idempotent requests. Only these are sent again after a lost response.
    func isRepeatable(at target: MCPTarget) -> Bool {
        switch method {
        case "tools/call":
            let name = params?["name"]?.string ?? ""
            return target == .broker && ["endpoint_list", "endpoint_tools", "endpoint_wait"].contains(name)
        case "initialize", "ping", "server/discover", "completion/complete", "logging/setLevel", "tools/list",
            "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
            "resources/unsubscribe", "prompts/list", "prompts/get", "subscriptions/listen",
            "notifications/initialized", "notifications/cancelled":
            return true
        default: return false
        }
    }

    /// Builds the HTTP message for this line.
    func post(in session: MCPSessionInfo) -> OutgoingMCPMessage {
        guard let revision, let method else { return OutgoingMCPMessage(body: bytes, headers: session.headers) }
        // MCP 2026-07-28, Streamable HTTP: headers repeat the protocol version, the method and the name.
        var headers: [OutgoingMCPMessage.Header] = [
            .init("MCP-Protocol-Version", revision), .init("Mcp-Method", method),
        ]
        // Stdio clients send no Mcp-Param headers, and the bridge does not know the tool's schema.
        if method == "tools/call" { headers.append(.init("Patchbay-Transport", "stdio")) }
        return OutgoingMCPMessage(
            body: bytes,
            headers: headers + (subject.map { [.init("Mcp-Name", Self.headerText($0))] } ?? [])
        )
    }

    private var subject: String? {
        switch method {
        case "tools/call", "prompts/get": params?["name"]?.string
        case "resources/read": params?["uri"]?.string
        default: nil
        }
    }

    /// Encodes a header value: visible ASCII unchanged, other text in base64 as MCP 2026-07-28 specifies.
    static func headerText(_ text: String) -> String {
        let isPlain =
            !text.isEmpty && !text.hasPrefix("=?base64?") && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isPlain ? text : "=?base64?\(Data(text.utf8).base64EncodedString())?="
    }
}
