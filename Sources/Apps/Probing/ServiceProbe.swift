import FoundationEssentials
import Model
import NIOHTTP1

/// The requests that identify AppReveal and MCP servers, and the parsers of their responses.
///
/// All requests are free of side effects and need no secret. AppReveal serves `GET /health` without its session token.
/// Every MCP server answers `initialize`, over HTTP or in lines. Profiles identify the other servers.
enum ServiceProbe {
    static let health = ProbeHTTPRequest(method: .GET, path: "/health")
    static let initializeMessage = """
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},\
        "clientInfo":{"name":"patchbay","version":"\(Version.text)"}}}
        """
    /// The paths of MCP servers, the usual one first. Servers built with the official SDKs return 404 for other paths.
    static let initialize = ["/mcp", "/"].map { path in
        ProbeHTTPRequest(
            method: .POST,
            path: path,
            body: Array(initializeMessage.utf8),
            accept: "application/json, text/event-stream"
        )
    }
    private static let launchContextMessage = """
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"launch_context","arguments":{}}}
        """
    static let initializeLine = LineExchange(message: initializeMessage)
    /// Calls the tool `launch_context`. AppReveal up to 0.9 answers without a token; 0.10 and later require the session
    /// token.
    static func launchContext(token: String? = nil) -> ProbeHTTPRequest {
        ProbeHTTPRequest(
            method: .POST,
            path: "/",
            body: Array(launchContextMessage.utf8),
            token: token
        )
    }

    /// Parses AppReveal's health response: an object with the port and the authentication or discovery mode.
    ///
    /// - Returns: Nil for any other response. Includes the launch ID if the app reports one.
    static func appReveal(_ response: ProbeHTTPRequest.Response) -> ServerIdentity? {
        struct Health: Decodable {
            let status: String
            let port: Int
            let auth: String?
            let bonjour: AnyValue?
            let discovery: AnyValue?
            let boot: String?
            let bundleId: String?
        }
        guard response.status == 200, let health = decode(Health.self, response),
            health.auth != nil || health.bonjour != nil || health.discovery != nil
        else { return nil }
        return ServerIdentity(
            kind: .appreveal,
            app: health.bundleId.map { SanitizedText($0, limit: 155) },
            launchID: health.boot.map { SanitizedText($0) },
            wantsToken: health.auth == "session-token"
        )
    }

    /// Parses the server's name and version from an `initialize` result; nil for any other response.
    static func server(_ response: ProbeHTTPRequest.Response) -> ServerIdentity? {
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
        guard let result = decode(Reply.self, response)?.result else { return nil }
        let isAppReveal = result.serverInfo.name == "AppReveal"
        return ServerIdentity(
            kind: isAppReveal ? .appreveal : .mcp,
            name: SanitizedText(result.serverInfo.name),
            version: result.serverInfo.version.map { SanitizedText($0) }
        )
    }

    /// Parses the app from a `launch_context` result: JSON inside the text of the first content block.
    static func app(_ response: ProbeHTTPRequest.Response) -> ServerIdentity? {
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
            let deviceName: String?
        }
        guard let text = decode(Reply.self, response)?.result.content.first?.text,
            let context = try? JSONDecoder().decode(Context.self, from: Data(text.utf8))
        else { return nil }
        return ServerIdentity(
            kind: .appreveal,
            app: SanitizedText(context.bundleId, limit: 155),
            version: context.version.map { SanitizedText($0) },
            device: context.deviceName.map { SanitizedText($0) }
        )
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ response: ProbeHTTPRequest.Response) -> Value? {
        try? JSONDecoder().decode(type, from: Data(response.body))
    }

    /// Accepts any JSON value. Used to test whether a key is present.
    private struct AnyValue: Decodable {
        init(from decoder: any Decoder) throws {}
    }
}
