import Client
import FoundationEssentials
import JSON

/// A line that an agent's client wrote, as far as its way to the broker depends on what it says.
struct ClientMessage: Sendable {
    private static let revisionKey = "io.modelcontextprotocol/protocolVersion"

    let bytes: [UInt8]
    /// Of a request.
    let id: JSON?
    /// Nil for an answer to the server, and for several messages at once, as 2025-03-26 allows them.
    let method: String?
    /// Why it is no message of JSON-RPC 2.0 that MCP takes; nil where it is one.
    let fault: String?
    /// Whether somebody waits for what comes of it: for a notification and an answer nobody does.
    let wantsAnswer: Bool
    private let params: JSON?

    /// - Throws: `JSONError`.
    init(_ line: [UInt8]) throws(JSONError) {
        let json = try JSON(parsing: line)
        bytes = line
        method = json["method"]?.string
        params = json["params"]
        let given = json["id"]
        id = method == nil ? nil : given.flatMap { $0.string == nil && $0.number == nil ? nil : $0 }
        let isAnswer = json["result"] != nil || json["error"] != nil
        wantsAnswer = method == nil ? !isAnswer : given != nil
        fault =
            if method != nil, let given, id == nil {
                "the id of a request must be a text or a number, not \(given.kind)"
            } else if json.object == nil, json.array == nil {
                "a message must be an object, not \(json.kind)"
            } else {
                nil
            }
    }

    /// What each request says of itself from 2026-07-28 on; nil in a session, where it was agreed upon.
    var revision: String? { params?["_meta"]?[Self.revisionKey]?.string }

    /// The request that its client wants no answer to any more.
    var cancelled: JSON? { method == "notifications/cancelled" ? params?["requestId"] : nil }

    var isInitialize: Bool { method == "initialize" }
    /// Whether it stays open until its client ends it.
    var isSubscription: Bool { method == "subscriptions/listen" }

    /// Whether doing it twice is the same as doing it once: only that may be sent again when no answer came.
    func isRepeatable(at door: MCPTarget) -> Bool {
        switch method {
        case "tools/call":
            let name = params?["name"]?.string ?? ""
            return door == .broker && ["endpoint_list", "endpoint_tools", "endpoint_wait"].contains(name)
        case "initialize", "ping", "server/discover", "completion/complete", "logging/setLevel", "tools/list",
            "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
            "resources/unsubscribe", "prompts/list", "prompts/get", "subscriptions/listen",
            "notifications/initialized", "notifications/cancelled":
            return true
        default: return false
        }
    }

    /// The post that carries it.
    func post(in session: MCPSessionInfo) -> MCPMessage {
        guard let revision, let method else { return MCPMessage(body: bytes, headers: session.headers) }
        // 2026-07-28, Streamable HTTP: what a request is about stands in its head, too.
        var headers: [MCPMessage.Header] = [.init("MCP-Protocol-Version", revision), .init("Mcp-Method", method)]
        // Over standard input and output a client need not look what a tool wants in Mcp-Param headers, and we do not know.
        if method == "tools/call" { headers.append(.init("Patchbay-Transport", "stdio")) }
        return MCPMessage(
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

    /// As it is where it is visible ASCII; else in base64, in the form that 2026-07-28 has for it.
    static func headerText(_ text: String) -> String {
        let isPlain =
            !text.isEmpty && !text.hasPrefix("=?base64?") && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isPlain ? text : "=?base64?\(Data(text.utf8).base64EncodedString())?="
    }
}
