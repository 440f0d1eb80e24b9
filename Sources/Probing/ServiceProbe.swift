import FoundationEssentials
import Model
import NIOHTTP1

/// The questions that tell the servers we know apart, and how their answers are read.
///
/// Only questions that change nothing in the app and need no secret: AppReveal leaves `GET /health` open even where its
/// session token is required, app-debug lists its actions, and `initialize` is how every MCP server introduces itself, over
/// HTTP or in lines.
enum ServiceProbe {
    static let health = ProbeHTTPRequest(method: .GET, path: "/health")
    static let actions = ProbeHTTPRequest(method: .GET, path: "/actions")
    static let introduction = """
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},\
        "clientInfo":{"name":"patchbay","version":"\(Version.text)"}}}
        """
    /// Where MCP servers are, the usual place first: those made with the official SDKs answer 404 elsewhere.
    static let initialize = ["/mcp", "/"].map { path in
        ProbeHTTPRequest(
            method: .POST,
            path: path,
            body: introduction,
            accept: "application/json, text/event-stream"
        )
    }
    static let initializeInLines = LineExchange(message: introduction)
    /// AppReveal up to 0.9 answers it to anybody; since 0.10 only to who has the session token.
    static func launchContext(token: String? = nil) -> ProbeHTTPRequest {
        ProbeHTTPRequest(
            method: .POST,
            path: "/",
            body: """
                {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"launch_context","arguments":{}}}
                """,
            token: token
        )
    }

    /// AppReveal's health: an object with its own port and how it authenticates or announces itself.
    ///
    /// - Returns: Nil when the answer is none; of an app that tells its launch also that.
    static func appReveal(_ answer: ProbeHTTPRequest.Answer) -> ServerIdentity? {
        struct Health: Decodable {
            let status: String
            let port: Int
            let auth: String?
            let bonjour: AnyValue?
            let discovery: AnyValue?
            let boot: String?
            let bundleId: String?
        }
        guard answer.status == 200, let health = decode(Health.self, answer),
            health.auth != nil || health.bonjour != nil || health.discovery != nil
        else { return nil }
        return ServerIdentity(
            kind: .appreveal,
            app: health.bundleId.map { SanitizedText($0, limit: 155) },
            boot: health.boot.map { SanitizedText($0) },
            wantsToken: health.auth == "session-token"
        )
    }

    /// app-debug's actions: an array of strings. It has no health, so a server that answers so to everything is none.
    static func isAppDebug(_ answer: ProbeHTTPRequest.Answer, beside health: ProbeHTTPRequest.Answer?) -> Bool {
        guard answer.status == 200, decode([String].self, answer) != nil else { return false }
        return health.map { $0.status != 200 || $0.body != answer.body } ?? true
    }

    /// The name and version in an `initialize` result; nil when the answer is none.
    static func server(_ answer: ProbeHTTPRequest.Answer, inLines takesLines: Bool = false) -> ServerIdentity? {
        struct Reply: Decodable {
            struct Result: Decodable {
                struct Info: Decodable {
                    let name: String
                    let version: String?
                }
                let protocolVersion: String
                let serverInfo: Info
            }
            let result: Result
        }
        guard let result = decode(Reply.self, answer)?.result else { return nil }
        let isAppReveal = result.serverInfo.name == "AppReveal"
        return ServerIdentity(
            kind: isAppReveal ? .appreveal : .mcp,
            name: SanitizedText(result.serverInfo.name),
            version: result.serverInfo.version.map { SanitizedText($0) },
            takesLines: takesLines
        )
    }

    /// The app behind AppReveal, as `launch_context` tells it: JSON inside the text of the first content block.
    static func app(_ answer: ProbeHTTPRequest.Answer) -> (bundleID: SanitizedText, version: SanitizedText?)? {
        struct Reply: Decodable {
            struct Result: Decodable {
                struct Block: Decodable { let text: String? }
                let content: [Block]
            }
            let result: Result
        }
        struct Context: Decodable {
            let bundleId: String
            let version: String?
        }
        guard let text = decode(Reply.self, answer)?.result.content.first?.text,
            let context = try? JSONDecoder().decode(Context.self, from: Data(text.utf8))
        else { return nil }
        return (SanitizedText(context.bundleId, limit: 155), context.version.map { SanitizedText($0) })
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ answer: ProbeHTTPRequest.Answer) -> Value? {
        try? JSONDecoder().decode(type, from: Data(answer.body))
    }

    /// Any JSON value, present or not.
    private struct AnyValue: Decodable {
        init(from decoder: any Decoder) throws {}
    }
}
