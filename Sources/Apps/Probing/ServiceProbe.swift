import Model

/// The requests that identify AppReveal and MCP servers, and the parsers of their responses.
///
/// All requests are free of side effects and need no secret. AppReveal serves `GET /health` without its session token.
/// Every MCP server answers `initialize`, over HTTP or in lines. Profiles identify the other servers.
enum ServiceProbe {
    /// The maximum length of a bundle identifier in bytes.
    private static let appLimit = 155

    static let health = AppHTTPRequest("GET", "/health")
    static let initializeMessage = """
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},\
        "clientInfo":{"name":"patchbay","version":"\(Version.text)"}}}
        """
    /// The paths of MCP servers, the usual one first. Servers built with the official SDKs return 404 for other paths.
    static let initialize = ["/mcp", "/"].map { path in
        AppHTTPRequest(
            "POST",
            path,
            accept: "application/json, text/event-stream",
            body: Array(initializeMessage.utf8)
        )
    }
    private static let launchContextMessage = """
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"launch_context","arguments":{}}}
        """
    /// Calls the tool `launch_context`. AppReveal up to 0.9 answers without a token; 0.10 and later require the session
    /// token.
    static func launchContext(token: String? = nil) -> AppHTTPRequest {
        AppHTTPRequest("POST", "/", secret: token, body: Array(launchContextMessage.utf8))
    }

    /// Parses AppReveal's health response: an object with the port and the authentication or discovery mode.
    ///
    /// - Returns: Nil for any other response. Includes the launch ID if the app reports one.
    static func appReveal(_ response: AppResponse) -> ServerIdentity? {
        guard response.status == 200, let health = response.json, health["status"]?.string != nil,
            health["port"]?.int != nil,
            ["auth", "bonjour", "discovery"].contains(where: { health[$0].map { !$0.isNull } ?? false })
        else { return nil }
        return ServerIdentity(
            kind: .appreveal,
            app: health["bundleId"]?.string.map { SanitizedText($0, limit: appLimit) },
            launchID: health["boot"]?.string.map { SanitizedText($0) },
            wantsToken: health["auth"] == "session-token",
            port: health["port"]?.int.flatMap { UInt16(exactly: $0) }
        )
    }

    /// Parses the server's name and version from an `initialize` result; nil for any other response.
    static func server(_ response: AppResponse) -> ServerIdentity? {
        guard let result = response.json?["result"], result["protocolVersion"]?.string != nil,
            let name = result["serverInfo"]?["name"]?.string
        else { return nil }
        return ServerIdentity(
            kind: name == "AppReveal" ? .appreveal : .mcp,
            name: SanitizedText(name),
            version: result["serverInfo"]?["version"]?.string.map { SanitizedText($0) }
        )
    }

    /// Parses the app from a `launch_context` result: JSON inside the text of the first content block.
    static func app(_ response: AppResponse) -> ServerIdentity? {
        guard let text = response.json?["result"]?["content"]?.array?.first?["text"]?.string,
            let context = try? JSON(parsing: text), let app = context["bundleId"]?.string
        else { return nil }
        return ServerIdentity(
            kind: .appreveal,
            app: SanitizedText(app, limit: appLimit),
            version: context["version"]?.string.map { SanitizedText($0) },
            device: context["deviceName"]?.string.map { SanitizedText($0) }
        )
    }
}
